"""Serves the bucket "captures" of S3 until standard input ends.

The arguments are NAME=PATH, the objects and the files that they contain. A name that ends in .gz is compressed. Prints the
port when it listens.
"""

import gzip
import sys
from pathlib import Path

import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
_, port = server.get_host_and_port()
client = boto3.client(
    "s3",
    endpoint_url=f"http://127.0.0.1:{port}",
    region_name="us-east-1",
    aws_access_key_id="access",
    aws_secret_access_key="secret",
)
client.create_bucket(Bucket="captures")
for argument in sys.argv[1:]:
    name, path = argument.split("=", 1)
    octets = Path(path).read_bytes()
    if name.endswith(".gz"):
        octets = gzip.compress(octets)
    client.put_object(Bucket="captures", Key=name, Body=octets)
print(port, flush=True)
sys.stdin.read()
server.stop()
