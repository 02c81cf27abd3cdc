#!/usr/bin/env python3
"""A plugin of Fairlead in Python: pods of a cost centre are bound while that is open.

usage: cost_centres.py ADDRESS FILE

FILE has a line for each cost centre: "cad open" or "sim closed". It is read again for every question, and while a pod waits.
The same plugin in C++ is cost_centres.cc. docs/remote-plugins.md says how to run it.
"""

import os
import sys
import time
from concurrent import futures

import grpc

from fairlead.plugin.v1 import plugin_pb2, plugin_pb2_grpc

LABEL = "example.com/cost-centre"


class CostCentres(plugin_pb2_grpc.PluginServicer):
    """Each waiting pod has a thread of the server: it needs as many threads as pods may wait."""

    def __init__(self, path):
        self.path = path

    def is_open(self, centre):
        """None: there is no such cost centre."""
        with open(self.path, encoding="utf-8") as lines:
            for line in lines:
                name, _, state = line.strip().partition(" ")
                if name == centre:
                    return state == "open"
        return None

    def Permit(self, request, context):
        centre = request.pod.labels.get(LABEL, "")
        while context.is_active():
            is_open = self.is_open(centre)
            if is_open is None:
                return plugin_pb2.PermitResponse(refusal=f'cost centre "{centre}" is not known')
            if is_open:
                return plugin_pb2.PermitResponse()
            time.sleep(0.1)
        return plugin_pb2.PermitResponse()  # the call has ended: nothing reads this

    def PostBind(self, request, context):
        say("bound", request.pod)
        return plugin_pb2.PostBindResponse()

    def Unreserve(self, request, context):
        say("not bound", request.pod)
        return plugin_pb2.UnreserveResponse()


def say(what, pod):
    print(f"{what} {pod.namespace}/{pod.name} on {pod.node}", flush=True)


def main():
    if len(sys.argv) != 3:
        sys.exit("usage: cost_centres.py ADDRESS FILE")
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=300))
    plugin_pb2_grpc.add_PluginServicer_to_server(CostCentres(sys.argv[2]), server)
    if server.add_insecure_port(sys.argv[1]) == 0:
        sys.exit(f"cannot listen at {sys.argv[1]}")
    server.start()
    print(f"process {os.getpid()} serves at {sys.argv[1]}", flush=True)
    server.wait_for_termination()


if __name__ == "__main__":
    main()
