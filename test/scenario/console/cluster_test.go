package console

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestAdministratorManagesCluster(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "market"))
	s.application()
	s.administrator()
	node := s.node()
	s.OC("annotate", "node", node, "slipway.openshift.io/cockpit=https://node.example.com:9090/")
	t.Cleanup(func() {
		s.OC("annotate", "node", node, "slipway.openshift.io/cockpit-")
		s.MustSlipway("oc", "adm", "uncordon", node)
	})
	s.Apply(strings.ReplaceAll(drained, "IMAGE", kit.ToolsImage))
	s.OC("wait", "deployment/front", "--for=condition=Available", "--timeout=2m")
	s.OC("wait", "pod/bare", "--for=condition=Ready", "--timeout=2m")
	s.OC("rollout", "status", "daemonset/agent", "--timeout=2m")
	s.OC("create", "route", "edge", "shop", "--service=front", "--hostname=shop.example.com")
	s.OC("wait", "route/shop", "--for=jsonpath={.status.ingress[0].conditions[0].status}=True", "--timeout=1m")
	s.OC("create", "route", "edge", "rival", "--service=front", "--hostname=shop.example.com")
	s.OC("create", "imagestream", "app")
	if _, err := s.TryOCWithInput(image, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.OC("create", "clusterresourcequota", s.Namespace, "--project-label-selector=kubernetes.io/metadata.name="+s.Namespace, "--hard=pods=10")
	t.Cleanup(func() { s.OC("delete", "clusterresourcequota", s.Namespace) })
	s.play("cluster.mjs", s.Namespace, node)
}

func TestUserObservesAndControlsApplication(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "bookshop"))
	s.application()
	s.OC("create", "imagestream", "app")
	if _, err := s.TryOCWithInput(image, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.Apply(drawn)
	s.OC("start-build", "deliver")
	// The Jenkins plugin sets these annotations.
	s.OC("annotate", "build/deliver-1",
		`openshift.io/jenkins-status-json={"stages": [{"name": "Compile", "status": "SUCCESS", "durationMillis": 72000},
			{"name": "Release", "status": "PAUSED_PENDING_INPUT", "durationMillis": 900, "pauseDurationMillis": 800}]}`,
		`openshift.io/jenkins-pending-input-actions-json=[{"id": "release", "message": "Release to the world?", "proceedText": "Go ahead"}]`)
	s.OC("wait", "deployment/front", "--for=condition=Available", "--timeout=2m")
	s.play("drawings.mjs", s.Namespace)
	if got := s.OC("get", "build/deliver-1", "-o", `jsonpath={.metadata.annotations.pipeline\.slipway\.io/input-release}`); got != "proceed" {
		t.Errorf("the pipeline gets the response %q", got)
	}
	if got := s.OC("get", "route/shop", "-o", "jsonpath={.spec.to.weight} {.spec.alternateBackends[*].name} {.spec.alternateBackends[*].weight}"); got != "100 preview 100" {
		t.Errorf("the route has the weights %q", got)
	}
}

// drained contains pods that a drain handles in different ways, and an egress firewall.
const drained = `
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: front}
spec: {minAvailable: 1, selector: {matchLabels: {app: front}}}
---
apiVersion: v1
kind: Pod
metadata: {name: bare}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: bare, image: IMAGE, command: [sleep, "1000000"]}]
  volumes: [{name: scratch, emptyDir: {}}]
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: agent, image: IMAGE, command: [sleep, "1000000"]}]
---
apiVersion: network.openshift.io/v1
kind: EgressNetworkPolicy
metadata: {name: default}
spec:
  egress:
  - {type: Allow, to: {cidrSelector: 192.0.2.0/24}}
  - {type: Deny, to: {cidrSelector: 0.0.0.0/0}}
`

// drawn contains an object of each kind that the console draws. The jenkins service represents the
// Jenkins server that runs the pipeline builds.
const drawn = `
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop}
spec: {to: {kind: Service, name: front}}
---
apiVersion: v1
kind: Service
metadata: {name: preview}
spec: {selector: {app: front}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: database}
spec: {selector: {app: database}, ports: [{port: 5432}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: database}
spec:
  serviceName: database
  selector: {matchLabels: {app: database}}
  template:
    metadata: {labels: {app: database}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: database, image: ` + kit.ToolsImage + `, command: [sleep, "1000000"]}]
---
apiVersion: v1
kind: Service
metadata: {name: jenkins}
spec: {selector: {app: jenkins}, ports: [{port: 8080}]}
---
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: site}
spec:
  nodeSelector: {none: none}
  source: {type: Dockerfile, dockerfile: FROM scratch}
  strategy: {type: Docker, dockerStrategy: {from: {kind: ImageStreamTag, name: "app:latest"}}}
---
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: deliver}
spec: {strategy: {jenkinsPipelineStrategy: {jenkinsfile: "node {}"}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: clients}
spec:
  podSelector: {matchLabels: {app: front}}
  ingress: [{from: [{podSelector: {matchLabels: {role: client}}}], ports: [{port: 8080}]}]
`
