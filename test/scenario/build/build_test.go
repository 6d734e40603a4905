// Package build tests builds on a real cluster: they start, run in pods, can be followed and
// canceled, and are triggered. The pods run a custom builder that the tests create. Sources:
// OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds; OpenShift 3.11 Cluster
// Administration, chapter 14.
package build

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// script is the custom builder's script. It prints its input, and then does what MODE specifies.
const script = `echo "building $SOURCE_URI#$SOURCE_REF for $OUTPUT_REGISTRY/$OUTPUT_IMAGE from $OPENSHIFT_CUSTOM_BUILD_BASE_IMAGE"
case "$MODE" in
"") /bin/busybox nc -w 5 169.254.169.254 80 </dev/null 2>&1; /bin/busybox arping -c 1 -I eth0 169.254.169.254 2>&1 || exit 0 ;;
archive) /bin/busybox tar -tz ;;
count) /bin/busybox wc -c ;;
wait) exec /bin/busybox sleep 100000 ;;
fail) echo "there is no compiler"; exit 1 ;;
esac`

// project is the test's project. Its image stream "builder" contains the custom builder.
type project struct {
	*kit.Cluster
	t *testing.T
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{kit.Shared(t), t}
	// Wait for the label that shows that local storage has been ready, because builds have no
	// volume for layers before that. A node that an earlier test killed keeps the label.
	p.waitOutput("node", `{.items[*].metadata.labels.slipway\.openshift\.io/local-storage}`, "true")
	p.push("builder:latest", script)
	p.OC("create", "imagestream", "app")
	return p
}

// push pushes an image that runs a script to one of the project's image streams.
func (p *project) push(tag, script string) {
	p.t.Helper()
	must := func(err error) {
		p.t.Helper()
		if err != nil {
			p.t.Fatal(err)
		}
	}
	content := busybox(p.t)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	must(err)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: "amd64", OS: "linux", RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Entrypoint: []string{"/bin/busybox", "sh", "-c", script}},
	})
	must(err)
	image, err = mutate.AppendLayers(image, layer)
	must(err)
	reference, err := name.ParseReference(fmt.Sprintf("%s:5000/%s/%s", p.Address, p.Namespace, tag))
	must(err)
	token := strings.TrimSpace(p.OC("create", "token", "builder"))
	p.WaitFor("the push of "+tag, func(ctx context.Context) error {
		return remote.Write(reference, image, remote.WithContext(ctx), remote.WithAuth(&authn.Basic{Username: "any", Password: token}),
			remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: p.authority()}}))
	})
}

// authority returns a pool that contains the cluster's CA certificate.
func (p *project) authority() *x509.CertPool {
	p.t.Helper()
	content, err := os.ReadFile(p.Path("pki", "ca.crt"))
	if err != nil {
		p.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(content)
	return roots
}

// busybox returns a layer that contains only the busybox program.
func busybox(t *testing.T) []byte {
	t.Helper()
	program, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	var layer bytes.Buffer
	archive := tar.NewWriter(&layer)
	if err := archive.WriteHeader(&tar.Header{Name: "bin/busybox", Mode: 0o755, Size: int64(len(program))}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write(program); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return layer.Bytes()
}

// configure creates a BuildConfig for the custom builder. spec contains additional fields for its
// spec.
func (p *project) configure(name, mode, spec string) {
	p.t.Helper()
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {
		strategy: {customStrategy: {from: {kind: ImageStreamTag, name: "builder:latest"}, env: [{name: MODE, value: %q}]}},
		output: {to: {kind: ImageStreamTag, name: "app:latest"}}, %s}}`, name, mode, spec))
}

// waitPhase waits until a build is in the given phase.
func (p *project) waitPhase(build, want string) {
	p.t.Helper()
	p.waitOutput("build/"+build, "{.status.phase}", want)
}

// waitOutput waits until fields of an object have the expected values.
func (p *project) waitOutput(object, path, want string) {
	p.t.Helper()
	p.WaitFor(fmt.Sprintf("%s to have %s %s", object, path, want), func(context.Context) error {
		got, err := p.TryOC("get", object, "-o", "jsonpath="+path)
		if err == nil && got != want {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
}

const git = `source: {git: {uri: "https://git.example.com/app.git", ref: main}}`

func TestBuildRunsInPodAndRecordsResult(t *testing.T) {
	p := newProject(t)
	p.configure("app", "", git)
	log := p.OC("start-build", "app", "--follow", "--wait", "--env=WORD=hello")
	registry := "docker-registry.default.svc:5000/" + p.Namespace
	for _, want := range []string{
		"build.build.openshift.io/app-1 started",
		"building https://git.example.com/app.git#main for " + registry + "/app:latest from " + registry + "/builder@sha256:",
		"169.254.169.254): No route to host\n",
		"arping: socket: Operation not permitted\n",
	} {
		if !strings.Contains(log, want) {
			t.Errorf("start-build prints %q, which does not contain %q", log, want)
		}
	}
	if got := p.OC("get", "build/app-1", "-o", `jsonpath={.status.phase} {.status.outputDockerImageReference} {.spec.serviceAccount} {.metadata.annotations.openshift\.io/build\.pod-name} {.spec.triggeredBy[*].message} {.status.config.name}`); got !=
		"Complete "+registry+"/app:latest builder app-1-build Manually triggered app" {
		t.Errorf("the build is %s", got)
	}
	pod := p.Pod("app-1-build")
	if pod.Annotations["openshift.io/build.name"] != "app-1" || pod.Spec.Containers[0].Name != "custom-build" || pod.Spec.ServiceAccountName != "builder" {
		t.Errorf("the pod is %+v", pod)
	}
	if got := p.OC("logs", "bc/app"); !strings.Contains(log, got) || got == "" {
		t.Errorf("the log of the build config is %q", got)
	}
	p.WaitFor("events of the build", func(context.Context) error {
		if got := p.OC("get", "events", "-o", "jsonpath={.items[?(@.involvedObject.name=='app-1')].reason}"); !strings.Contains(got, "BuildCompleted") {
			return fmt.Errorf("there are %q", got)
		}
		return nil
	})

	// Start a build that fails, and then a copy of the first build. The copy is the third build of
	// its BuildConfig.
	if out, err := p.TryOC("start-build", "app", "--wait", "--env=MODE=fail"); err == nil {
		t.Errorf("waiting for a build that fails returned no error: %s", out)
	}
	if got := p.OC("get", "build/app-2", "-o", "jsonpath={.status.phase} {.status.reason} {.status.logSnippet}"); !strings.HasPrefix(got, "Failed GenericBuildFailed building ") ||
		!strings.HasSuffix(got, "\nthere is no compiler") {
		t.Errorf("the second build is %s", got)
	}
	p.OC("start-build", "--from-build=app-1", "--wait")
	if got := p.OC("get", "build/app-3", "-o", `jsonpath={.status.phase} {.metadata.annotations.openshift\.io/build\.clone-of}`); got != "Complete app-1" {
		t.Errorf("the third build is %s", got)
	}
	if got := p.OC("logs", "bc/app", "--version=2"); !strings.Contains(got, "there is no compiler") {
		t.Errorf("the log of the second build is %q", got)
	}
	const prune = "adm prune builds --keep-complete=1 --keep-failed=0 --keep-younger-than=0s"
	for _, confirm := range []string{"--confirm=false", "--confirm"} {
		if got := p.OC(append(strings.Fields(prune), confirm)...); !strings.Contains(got, "app-1\n") || !strings.Contains(got, "app-2\n") || strings.Contains(got, "app-3\n") {
			t.Errorf("prune %s prints %s", confirm, got)
		}
	}
	if got := p.OC("get", "builds", "-o", "name"); got != "build.build.openshift.io/app-3\n" {
		t.Errorf("left are %s", got)
	}
}

func TestUploadedSourceReachesBuild(t *testing.T) {
	p := newProject(t)
	dir := t.TempDir()
	for file, content := range map[string]string{"Dockerfile": "FROM scratch", "main.go": "package main"} {
		if err := os.WriteFile(dir+"/"+file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/.git", 0o700); err != nil {
		t.Fatal(err)
	}
	p.OC("new-build", "--name=made", "--binary", "--strategy=docker", "--to=app:made")
	if got := p.OC("get", "bc/made", "-o", "jsonpath={.spec.strategy.type} {.spec.source.type} {.spec.output.to.name}"); got != "Docker Binary app:made" {
		t.Errorf("new-build created %s", got)
	}
	p.configure("sent", "archive", "source: {binary: {}}")
	log := p.OC("start-build", "sent", "--from-dir="+dir, "--follow", "--wait")
	if !strings.Contains(log, "Dockerfile\nmain.go\n") || strings.Contains(log, ".git/") {
		t.Errorf("the build got %s", log)
	}
	const size = 64 << 20
	file := dir + "/large"
	if err := os.WriteFile(file, make([]byte, size), 0o600); err != nil {
		t.Fatal(err)
	}
	p.configure("counted", "count", "source: {binary: {}}")
	if log := p.OC("start-build", "counted", "--from-file="+file, "--follow", "--wait"); !strings.Contains(log, fmt.Sprint(size)) {
		t.Errorf("the build counted %s", log)
	}
	if got := p.OC("get", "build/counted-1", "-o", "jsonpath={.spec.source.binary.asFile}"); got != "large" {
		t.Errorf("the file has the name %q", got)
	}
	// The API server must distinguish an interrupted upload from the end of the source.
	reader, writer := io.Pipe()
	go func() {
		_, _ = writer.Write(make([]byte, 1<<20)) // blocks until the data is read, or fails
		writer.CloseWithError(errors.New("the line is dead"))
	}()
	path := "/apis/build.openshift.io/v1/namespaces/" + p.Namespace + "/buildconfigs/counted/instantiatebinary"
	if err := p.Client.CoreV1().RESTClient().Post().AbsPath(path).Param("asFile", "large").Body(reader).Do(t.Context()).Error(); err == nil {
		t.Error("the builder accepts a part of the source")
	}
	p.waitOutput("build/counted-2", "{.status.phase} {.status.reason}", "Failed FetchSourceFailed")
}

// reportTimeout is the timeout for a command that must report why a build waits.
const reportTimeout = 2 * time.Minute

func TestClientPrintsWhyBuildWaits(t *testing.T) {
	p := newProject(t)
	p.configure("nowhere", "", git+`, nodeSelector: {disk: none}`)
	const nowhere = "its pod nowhere-1-build is not scheduled: 0/1 nodes are available"
	for _, tt := range []struct{ command, want string }{
		{"start-build nowhere --wait", nowhere}, {"logs -f bc/nowhere", nowhere},
		{"start-build nowhere --wait", "with the run policy Serial it starts after nowhere-1"},
	} {
		reader, message := p.StartOCForErrors(strings.Fields(tt.command)...), ""
		readErr := make(chan error, 1)
		go func() {
			var err error
			for line := ""; err == nil && !strings.Contains(message, tt.want); message += line {
				line, err = reader.ReadString('\n')
			}
			readErr <- err
		}()
		select {
		case err := <-readErr:
			if err != nil {
				t.Fatalf("oc %s does not print what the build waits for: %v\n%s", tt.command, err, message)
			}
		case <-time.After(reportTimeout):
			t.Fatalf("oc %s has not printed what the build waits for in %s", tt.command, reportTimeout)
		}
	}
}

func TestNextBuildStartsAfterCanceledBuild(t *testing.T) {
	p := newProject(t)
	p.configure("slow", "wait", git)
	p.OC("start-build", "slow")
	p.OC("start-build", "slow")
	p.waitPhase("slow-1", "Running")
	p.waitPhase("slow-2", "New")
	p.OC("cancel-build", "slow-1")
	if got := p.OC("get", "build/slow-1", "-o", "jsonpath={.status.phase} {.status.reason}"); got != "Cancelled CancelledBuild" {
		t.Errorf("the first build is %s", got)
	}
	p.waitPhase("slow-2", "Running")
	p.OC("delete", "pod", "slow-2-build", "--now")
	p.waitOutput("build/slow-2", "{.status.phase} {.status.reason}", "Error BuildPodDeleted")
}

func TestBuildPodsRequirePrivileges(t *testing.T) {
	p := newProject(t)
	p.configure("slow", "wait", git)
	p.OC("policy", "add-role-to-user", "edit", "developer")
	if out, err := p.TryOC("--as=developer", "start-build", "slow"); err == nil || !strings.Contains(err.Error(), "build strategy Custom is not allowed") {
		t.Errorf("a developer starts a custom build: %s, %v", out, err)
	}
	p.OC("start-build", "slow")
	p.waitPhase("slow-1", "Running")
	if out, err := p.TryOC("--as=developer", "exec", "slow-1-build", "--", "/bin/busybox", "id"); err == nil || !strings.Contains(err.Error(), "security context constraint") {
		t.Errorf("a developer runs a command in the pod of a build: %s, %v", out, err)
	}
	if out := p.OC("exec", "slow-1-build", "--", "/bin/busybox", "id"); !strings.Contains(out, "uid=0") {
		t.Errorf("the administrator's command runs as %s", out)
	}
	// Only the build's pod is allowed to update the build's details.
	body := `{"kind":"Build","apiVersion":"build.openshift.io/v1","metadata":{"name":"slow-1"},"status":{"message":"forged"}}`
	path := "/apis/build.openshift.io/v1/namespaces/" + p.Namespace + "/builds/slow-1/details"
	err := p.Client.CoreV1().RESTClient().Put().AbsPath(path).SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(t.Context()).Error()
	if err == nil || !strings.Contains(err.Error(), "only the build's pod") {
		t.Errorf("the administrator writes a forged report: %v", err)
	}
	// The API server must return only the log of the build's own pod. This pod has the same name as
	// a build's pod, but does not belong to the build.
	p.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: notes-build}, spec: {containers: [{name: notes, image: localhost/none}]}}`)
	p.Apply(`{apiVersion: build.openshift.io/v1, kind: Build, metadata: {name: notes}, spec: {strategy: {customStrategy: {from: {kind: DockerImage, name: localhost/none}}}}}`)
	p.waitOutput("build/notes", "{.status.phase} {.status.reason}", "Error BuildPodExists")
	if out, err := p.TryOC("logs", "build/notes"); err == nil || !strings.Contains(err.Error(), `pods "notes-build" not found`) {
		t.Errorf("the log of another pod: %s, %v", out, err)
	}
}
