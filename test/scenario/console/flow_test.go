package console

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestUserCreatesProjectAndSeesUpdates(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.play("project.mjs", s.newProject("guestbook"))
}

func TestUserDeploysApplicationInFirefox(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.play("firefox.mjs", s.newProject("travel"))
}

func TestNewUserCreatesApplicationsFromCatalog(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.MustSlipway("images", "publish", kit.ToolsImage, "openshift/tools:latest")
	t.Cleanup(func() { s.OC("delete", "imagestream/tools", "-n", "openshift") })
	public := s.repository("", map[string]string{"Dockerfile": "FROM scratch", "web/requirements.txt": ""})
	private := s.repository("opens3same", map[string]string{"Dockerfile": page, "index.html": "<h1>Built from source</h1>"})
	name := s.newProject("blog")
	wait := s.start("catalog.mjs", name, public, private)
	s.WaitFor("project "+name, func(context.Context) error {
		_, err := s.TryOC("get", "project", name)
		return err
	})
	s.In(name).Apply(podQuota)
	wait()
}

func TestUserManagesObjectsOfProject(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "shop"))
	s.application()
	s.play("resources.mjs", s.Namespace)
}

func TestUserFollowsLogsAndEventsOfProject(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "webshop"))
	s.application()
	s.OC("label", "service/front", "flavour=vanilla")
	s.Apply(followed)
	s.OC("start-build", "site")
	other := s.newProject("stock")
	s.MustSlipway("oc", "adm", "new-project", other, "--admin=developer")
	s.play("monitoring.mjs", s.Namespace, other)
}

func TestExpiredSessionKeepsFormInput(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "cafe"))
	s.application()
	s.createUser("ann")
	s.play("session.mjs", s.Namespace)
}

func TestPagesContinueAfterRestartOfMaster(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "harbor"))
	s.application()
	s.OC("create", "service", "clusterip", "removed", "--tcp=80")
	wait := s.start("restart.mjs", s.Namespace)
	s.WaitFor("open pages", func(context.Context) error {
		_, err := s.TryOC("get", "configmap/kill")
		return err
	})
	pod := s.OnlyPod("app=front").Name
	s.Kill("control-plane")
	s.WaitFor("the next control plane", func(context.Context) error {
		_, err := s.TryOC("delete", "service/removed", "--ignore-not-found")
		return err
	})
	s.OC("create", "service", "clusterip", "added", "--tcp=80")
	s.Exec(pod, "sh", "-c", "echo after the restart > /proc/1/fd/1")
	wait()
	if got := s.OC("get", "deployment/front", "-o", "jsonpath={.spec.template.spec.containers[0].resources.limits.memory}"); got != "64Mi" {
		t.Errorf("the limit of the memory is %q", got)
	}
	s.OC("get", "secret/pull", "configmap/typed")
}

func TestProjectAdministratorGrantsRolesAndSeesQuota(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.application()
	s.Apply(quota)
	s.Apply(strings.ReplaceAll(greedy, "IMAGE", kit.ToolsImage))
	s.play("membership.mjs", s.Namespace)
}

func TestUserCreatesAndChangesObjectsInForms(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "bistro"))
	s.application()
	s.play("forms.mjs", s.Namespace)
}

func TestEditorFindsProblemsAndCompletesFields(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "library"))
	s.application()
	s.play("editor.mjs", s.Namespace)
}

func TestViewerSeesLayersOfImageAndChangesNothing(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.MustSlipway("oc", "adm", "policy", "add-role-to-user", "view", "developer", "-n", s.Namespace)
	s.Apply(strings.ReplaceAll(application, "IMAGE", kit.ToolsImage))
	s.OC("create", "imagestream", "app")
	for _, manifest := range []string{image, strings.ReplaceAll(image, strings.Repeat("1", 64), strings.Repeat("2", 64))} {
		if _, err := s.TryOCWithInput(manifest, "create", "-f", "-"); err != nil {
			t.Fatal(err)
		}
	}
	s.play("layers.mjs", s.Namespace)
}

func TestConsoleRecoversFromNetworkFailures(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "depot"))
	s.application()
	s.Apply(waitingBuild)
	s.play("network.mjs", s.Namespace)
}

func TestConsoleWorksOverSlowNetwork(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.application()
	s.play("slow.mjs", s.Namespace)
}

func TestSecondUserOfBrowserSeesNothingOfFirst(t *testing.T) {
	s := siteOf(t, kit.Shared(t))
	s.application()
	s.createUser("ann")
	s.play("users.mjs", s.Namespace)
}

func TestTwoPeopleEditTheSameObjects(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "kitchen"))
	s.application()
	s.createUser("ann")
	s.MustSlipway("oc", "adm", "policy", "add-role-to-user", "edit", "ann", "-n", s.Namespace)
	s.OC("create", "configmap", "menu", "--from-literal=soup=tomato")
	s.play("pair.mjs", s.Namespace)
	if got := s.OC("get", "configmap/menu", "-o", "jsonpath={.data}"); got != `{"dessert":"cake","fish":"trout","soup":"tomato"}` {
		t.Errorf("the data is %s", got)
	}
	if got := s.OC("get", "deployment/front", "-o", "jsonpath={.spec.template.spec.containers[0].resources.limits.memory}"); got != "80Mi" {
		t.Errorf("the limit of the memory is %q", got)
	}
}

func TestPagesAreAccessible(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "boutique"))
	s.application()
	s.administrator()
	s.OC("create", "imagestream", "app")
	if _, err := s.TryOCWithInput(image, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	s.Apply(drawn)
	s.Apply(strings.ReplaceAll(edited, "IMAGE", kit.ToolsImage))
	s.OC("create", "secret", "generic", "hook", "--from-literal=key=value")
	s.OC("autoscale", "deployment/front", "--max=2")
	s.OC("start-build", "deliver")
	s.OC("wait", "deployment/front", "--for=condition=Available", "--timeout=2m")
	s.OC("wait", "pod/user", "--for=condition=Ready", "--timeout=2m")
	s.Apply(quota)
	for _, part := range []string{"project", "cluster", "overlays"} {
		s.play("accessible.mjs", part, s.Namespace, s.node())
	}
}

// createUser creates a user with the password that logIn in browser.mjs uses.
func (s *site) createUser(name string) {
	s.t.Helper()
	if result := s.SlipwayWithInput("any\n", "htpasswd", "set", name); result.Code != 0 {
		s.t.Fatalf("slipway htpasswd set: %+v", result)
	}
}

// newProject returns a name that begins with base, for a project that a flow creates. newProject's
// cleanup deletes the project.
func (s *site) newProject(base string) string {
	name := base + "-" + rand.String(5)
	s.t.Cleanup(func() {
		err := s.Client.CoreV1().Namespaces().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			s.t.Error(err)
		}
	})
	return name
}

// page is the Dockerfile of a web server.
const page = `FROM docker-registry.default.svc:5000/openshift/tools:latest
COPY index.html /www/
EXPOSE 8080
CMD ["httpd", "-f", "-p", "8080", "-h", "/www"]
`

const podQuota = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: pods}
spec: {hard: {pods: 20}}
`

// quota contains a ResourceQuota, which the application's only service uses up, and a LimitRange.
const quota = `
apiVersion: v1
kind: ResourceQuota
metadata: {name: services}
spec: {hard: {services: 1, pods: 10}}
---
apiVersion: v1
kind: LimitRange
metadata: {name: sizes}
spec: {limits: [{type: Container, max: {memory: 1Gi}, defaultRequest: {memory: 64Mi}}]}
`

// greedy is a deployment whose containers exceed the LimitRange in quota.
const greedy = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: greedy}
spec:
  selector: {matchLabels: {app: greedy}}
  template:
    metadata: {labels: {app: greedy}}
    spec:
      containers: [{name: greedy, image: IMAGE, resources: {limits: {memory: 2Gi}}}]
`

// followed contains an object of each kind that has logs, and a pod that cannot be scheduled.
const followed = `
apiVersion: v1
kind: Service
metadata: {name: db-peers}
spec: {clusterIP: None, selector: {app: db}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, labels: {flavour: pistachio}}
spec:
  serviceName: db-peers
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: db, image: ` + kit.ToolsImage + `, command: [sh, -c, 'echo "$HOSTNAME is open"; exec sleep 1000000']}]
---
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: shop}
spec:
  replicas: 1
  selector: {app: shop}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: shop, image: ` + kit.ToolsImage + `, command: [sh, -c, 'echo the shop is open; exec sleep 1000000']}]
---
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: site}
spec:
  source: {type: Dockerfile, dockerfile: "FROM scratch\nLABEL site=front"}
  strategy: {type: Docker, dockerStrategy: {}}
---
apiVersion: v1
kind: Pod
metadata: {name: stuck}
spec:
  nodeSelector: {none: none}
  containers: [{name: stuck, image: ` + kit.ToolsImage + `}]
`

// image is an image with two layers of 1 MiB and 2 MiB.
const image = `
apiVersion: image.openshift.io/v1
kind: ImageStreamMapping
metadata: {name: app}
tag: latest
image:
  metadata: {name: "sha256:1111111111111111111111111111111111111111111111111111111111111111"}
  dockerImageReference: registry.example.com/me/app@sha256:1111111111111111111111111111111111111111111111111111111111111111
  dockerImageMetadata: {kind: DockerImage, apiVersion: "1.0", Architecture: amd64, Config: {Cmd: [run, --it]}}
  dockerImageLayers:
  - {name: "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", size: 1048576, mediaType: application/vnd.oci.image.layer.v1.tar}
  - {name: "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", size: 2097152, mediaType: application/vnd.oci.image.layer.v1.tar}
`

// waitingBuild is a BuildConfig whose builds cannot be scheduled.
const waitingBuild = `
apiVersion: build.openshift.io/v1
kind: BuildConfig
metadata: {name: waits}
spec:
  nodeSelector: {none: none}
  source: {type: Dockerfile, dockerfile: FROM scratch}
  strategy: {type: Docker, dockerStrategy: {}}
`
