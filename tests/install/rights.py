"""Rights as (verb, group, resource, namespace, name): those that RBAC manifests grant, and those that an audit log shows
to be used. Namespace and name are '' where they do not matter."""
import json

PROGRAMS = ("fairlead/", "fairlead-gpu-index")  # How their user agents start.


def granted(objects):
    """{(verb, group, resource): [(namespace, names)]} of Roles and ClusterRoles; a namespace of '' is all, and no names are any."""
    out = {}
    for thing in objects:
        if thing["kind"] not in ("Role", "ClusterRole"):
            continue
        namespace = thing["metadata"].get("namespace", "")
        for rule in thing.get("rules") or []:
            for group in rule["apiGroups"]:
                for resource in rule["resources"]:
                    for verb in rule["verbs"]:
                        out.setdefault((verb, group, resource), []).append((namespace, tuple(rule.get("resourceNames", ()))))
    return out


def used(lines):
    """{(verb, group, resource): {(namespace, name)}} of the programs' requests in an audit log, one event per line."""
    out = {}
    for line in lines:
        event = json.loads(line)
        reference = event.get("objectRef")
        if not event.get("userAgent", "").startswith(PROGRAMS) or reference is None:
            continue
        resource = reference.get("resource", "")
        if reference.get("subresource"):
            resource += "/" + reference["subresource"]
        key = (event["verb"], reference.get("apiGroup", ""), resource)
        out.setdefault(key, set()).add((reference.get("namespace", ""), reference.get("name", "")))
    return out
