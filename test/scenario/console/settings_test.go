package console

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestAdministratorConfiguresConsole(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "warehouse"))
	s.application()
	s.Apply(agent)
	s.Apply(quota)
	const master = "https://master.example.com:8443"
	client := "oauthclient/openshift-web-console"
	addresses := s.OC("get", client, "-o", "jsonpath={.redirectURIs}")
	s.OC("patch", client, "--type=json", "-p", `[{"op": "add", "path": "/redirectURIs/-", "value": "`+master+`/console/"}]`)
	t.Cleanup(func() { s.OC("patch", client, "--type=merge", "-p", `{"redirectURIs": `+addresses+`}`) })
	const configMap = "configmap/webconsole-config"
	original := s.OC("get", configMap, "-n", "openshift-web-console", "-o", `jsonpath={.data.webconsole-config\.yaml}`)
	visitor := s.browser()
	configure := func(text string, color bool) {
		s.OC("patch", configMap, "-n", "openshift-web-console", "--type=merge", "-p", fmt.Sprintf(`{"data": {"webconsole-config.yaml": %q}}`, text))
		s.WaitFor("settings of the console", func(context.Context) error {
			if got := visitor.send(http.MethodGet, "/console/config.json", nil).body; strings.Contains(got, "teal") != color {
				return fmt.Errorf("the configuration of the console is %s", got)
			}
			return nil
		})
	}
	// Restore the original settings and wait until they are in effect, because the package's other
	// tests need them.
	defer configure(original, false)
	configure(customized, true)
	s.play("settings.mjs", s.Namespace)
}

const customized = `
apiVersion: webconsole.config.openshift.io/v1
kind: WebConsoleConfiguration
clusterInfo:
  masterPublicURL: https://master.example.com:8443
  loggingPublicURL: https://logs.example.com/
  metricsPublicURL: https://metrics.example.com/
  logoutPublicURL: https://www.example.com/bye
features: {inactivityTimeoutMinutes: 15}
extensions:
  scriptURLs: [https://www.example.com/brand.js]
  stylesheetURLs: [https://www.example.com/brand.css]
  properties: {color: teal}
`

// agent is a pod that responds like a JVM with a Jolokia agent, according to Jolokia's
// specification.
const agent = `
apiVersion: v1
kind: ConfigMap
metadata: {name: agent}
data:
  respond: |
    #!/bin/sh
    # A client that begins a TLS handshake gets no response.
    case $(dd bs=1 count=1 2>/dev/null) in P) ;; *) exit ;; esac
    length=0
    while read -r line; do
      line=$(printf %s "$line" | tr -d '\r')
      [ -n "$line" ] || break
      case $line in Content-Length:*) length=${line#*: } ;; esac
    done
    case $(dd bs=1 count="$length" 2>/dev/null) in
    *'"list"'*) value='{"java.lang":{"type=Memory":{"attr":{"HeapMemoryUsage":{"type":"composite"},"Verbose":{"type":"boolean","rw":true}},
      "op":{"gc":{"args":[],"ret":"void"},"reserve":{"args":[{"name":"bytes","type":"long"},{"name":"reason","type":"java.lang.String"}]}}},
      "type=Threading":{"op":{}}},"org.apache.camel":{"type=context":{}}}' ;;
    *'"write"'*'"value":true'*) value=false; touch /tmp/verbose ;;
    *'reserve(long,java.lang.String)'*'[64,"test"]'*) value='"64 bytes for test"' ;;
    *'"read"'*Memory*) value="{\"HeapMemoryUsage\":{\"used\":1048576,\"max\":4194304},\"Verbose\":$([ -e /tmp/verbose ] && echo true || echo false)}" ;;
    *'"read"'*) value='{}' ;;
    *dumpAllThreads*) value='[{"threadId":1,"threadName":"main","threadState":"RUNNABLE","stackTrace":
      [{"className":"com.example.Main","methodName":"run","fileName":"Main.java","lineNumber":7}]}]' ;;
    *) value=null ;;
    esac
    content="{\"status\":200,\"value\":$value}"
    printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %s\r\nConnection: close\r\n\r\n%s' "${#content}" "$content"
---
apiVersion: v1
kind: Pod
metadata: {name: front-java}
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: java
    image: ` + kit.ToolsImage + `
    command: [nc, -ll, -p, "8778", -e, /agent/respond]
    ports: [{name: jolokia, containerPort: 8778}]
    volumeMounts: [{name: agent, mountPath: /agent}]
  volumes:
  - name: agent
    configMap: {name: agent, defaultMode: 0755}
`
