#!/usr/bin/python3
"""Gives credentials to the broker: the secret of the pod's name has them as JSON in the key fields.

    - asb_encode_binding:
        fields: {DB_HOST: db, DB_PORT: "5432"}
"""
import base64
import json
import os

from ansible.module_utils.asb import request
from ansible.module_utils.basic import AnsibleModule


def main():
    module = AnsibleModule({"fields": {"type": "dict", "required": True}})
    fields = base64.b64encode(json.dumps(module.params["fields"]).encode()).decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": os.environ["POD_NAME"]}, "data": {"fields": fields}}
    try:
        request("POST", "/api/v1/namespaces/{POD_NAMESPACE}/secrets".format(**os.environ), secret)
    except (OSError, KeyError) as error:
        module.fail_json(msg="create secret with credentials: {}".format(error))
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
