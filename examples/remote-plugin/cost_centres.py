#!/usr/bin/env python3
"""A plugin of Fairlead in Python: pods of a cost centre are bound while that is open, and where that has its nodes.

usage: cost_centres.py ADDRESS FILE

FILE has a line for each cost centre: "cad open" or "sim closed". It is read again for every question, and while a pod waits.

A node with the label example.com/cost-centre takes no pods of another centre. Nodes with a smaller
example.com/cents-per-hour come first.

The same plugin in C++ is cost_centres.cc. docs/remote-plugins.md says how to run it.
"""

import os
import sys
import threading
import time
from concurrent import futures

import grpc

from fairlead.plugin.v1 import plugin_pb2, plugin_pb2_grpc

LABEL = "example.com/cost-centre"
PRICE = "example.com/cents-per-hour"


class CostCentres(plugin_pb2_grpc.PluginServicer):
    """Each waiting pod has a thread of the server: it needs as many threads as pods may wait."""

    def __init__(self, path):
        self.path = path
        self.lock = threading.Lock()  # of the copies
        self.copies = {}  # session -> (version, {name: node})

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

    def EvaluateNodes(self, request, context):
        with self.lock:
            version, nodes = self.copies.get(request.session, (0, {}))
            if request.base_version == 0:
                nodes = {}
            elif request.base_version != version:
                return plugin_pb2.EvaluateNodesResponse(need_snapshot=True)
            for name in request.gone:
                nodes.pop(name, None)
            nodes.update((node.name, node) for node in request.nodes)
            self.copies[request.session] = (request.version, nodes)
            return plugin_pb2.EvaluateNodesResponse(
                classes=[
                    judge(pods, list(nodes.values()) if pods.all_nodes else request.nodes) for pods in request.classes
                ]
            )

    def PostBind(self, request, context):
        say("bound", request.pod)
        return plugin_pb2.PostBindResponse()

    def Unreserve(self, request, context):
        say("not bound", request.pod)
        return plugin_pb2.UnreserveResponse()


def judge(pods, nodes):
    """Tells the nodes by their numbers: a message for each would cost more than everything else here."""
    scores = [0] * (1 + max((node.number for node in nodes), default=0))
    refused = []
    for node in nodes:
        if node.labels.get(LABEL, "") not in ("", pods.labels.get(LABEL, "")):
            refused.append(node.number)
            continue
        price = node.labels.get(PRICE, "")
        scores[node.number] = max(0, 100 - int(price)) if price.isdecimal() else 0
    refusal = plugin_pb2.Refusal(reason="node(s) of another cost centre", nodes=refused)
    return plugin_pb2.ClassJudgement(number=pods.number, scores=scores, refusals=[refusal])


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
