#!/bin/sh
# Runs a part of a Spark cluster in the foreground, with the Spark and the Python of Bullpen.
#
#   sh deploy/spark.sh master HOST [PORT]             the master of a standalone cluster
#   sh deploy/spark.sh worker HOST MASTER [DIRECTORY] a worker, such as of spark://10.0.0.5:7077
#   sh deploy/spark.sh connect HOST [PORT] [MASTER]   a server of Spark Connect
#
# HOST is the address on which it listens. Spark has no passwords by default: use an address of a
# private network, never a public one. PYTHON is the Python with Bullpen and its extra `reports`.
set -eu
usage() { sed -n '3,5s/^#   //p' "$0" >&2; exit 2; }
[ $# -ge 2 ] || usage
part=$1 host=$2
python=${PYTHON:-.venv/bin/python}
PYTHON=$(command -v "$python") && SPARK_HOME=$("$PYTHON" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))') || {
    echo "spark.sh: $python does not have Spark. Set PYTHON to the Python of Bullpen with the extra reports." >&2
    exit 2
}
# Spark runs Python in other directories.
case $PYTHON in /*) ;; *) PYTHON=$PWD/$PYTHON ;; esac
# Web pages of Spark stay on the loopback address; everything else listens on HOST.
SPARK_LOCAL_IP=127.0.0.1
PYSPARK_PYTHON=$PYTHON
SPARK_DAEMON_MEMORY=${SPARK_DAEMON_MEMORY:-512m}
# The REST port of the master runs programs for anybody who can reach it.
SPARK_DAEMON_JAVA_OPTS="-Dspark.master.rest.enabled=false ${SPARK_DAEMON_JAVA_OPTS:-}"
export SPARK_HOME SPARK_LOCAL_IP PYSPARK_PYTHON SPARK_DAEMON_MEMORY SPARK_DAEMON_JAVA_OPTS
deploy=org.apache.spark.deploy
case $part in
master)
    exec "$SPARK_HOME/bin/spark-class" $deploy.master.Master --host "$host" --port "${3:-7077}" --webui-port 0
    ;;
worker)
    [ $# -ge 3 ] || usage
    exec "$SPARK_HOME/bin/spark-class" $deploy.worker.Worker --host "$host" --webui-port 0 \
        --work-dir "${4:-/var/tmp/bullpen-spark}" "$3"
    ;;
connect)
    exec "$SPARK_HOME/bin/spark-submit" --class org.apache.spark.sql.connect.service.SparkConnectServer \
        --master "${4:-local[*]}" --conf spark.ui.enabled=false \
        --conf spark.driver.host="$host" --conf spark.driver.bindAddress="$host" \
        --conf spark.connect.grpc.binding.address="$host" --conf spark.connect.grpc.binding.port="${3:-15002}" \
        spark-internal
    ;;
*) usage ;;
esac
