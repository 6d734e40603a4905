package build

import (
	"fmt"
	"net"
	"net/http"
	"net/http/cgi"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// base pushes a base image with a shell to the project's registry and returns its reference.
func (p *project) base() string {
	p.t.Helper()
	p.push("base:latest", "")
	return "docker-registry.default.svc:5000/" + p.Namespace + "/base:latest"
}

// dockerConfig creates a BuildConfig for a Dockerfile. source contains the fields of its source,
// and output is its output tag.
func (p *project) dockerConfig(name, source, output string) {
	p.t.Helper()
	p.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: %s}, spec: {
		strategy: {dockerStrategy: {}}, source: {%s}, output: {to: {kind: ImageStreamTag, name: %q}}}}`, name, source, output))
}

// files writes executable files to a new directory.
func files(t *testing.T, content map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range content {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shell is a Dockerfile instruction that makes the following RUN steps use the base image's only
// program.
const shell = "SHELL [\"/bin/busybox\", \"sh\", \"-c\"]\n"

func TestDockerfileIsBuiltWithoutPrivilegesOnNode(t *testing.T) {
	p := newProject(t)
	dockerfile := "FROM " + p.base() + "\n" + shell + `RUN read inside outside length < /proc/self/uid_map; /bin/busybox test $outside -gt 0 && echo root is user $outside
RUN /bin/busybox find / -name token -o -name 'docker*' -o -name slipway-builder | /bin/busybox grep -v ^/sys && exit 1 || echo nothing of the builder
RUN /bin/busybox nc -w 5 169.254.169.254 80 </dev/null 2>&1; /bin/busybox arping -c 1 -I eth0 169.254.169.254 2>&1; /bin/busybox nslookup kubernetes.default.svc.cluster.local 2>&1 || exit 0
ENV WORD=hello
`
	p.dockerConfig("app", fmt.Sprintf("dockerfile: %q", dockerfile), "app:latest")
	log := p.OC("start-build", "app", "--follow", "--wait")
	for _, want := range []string{"\nroot is user ", "\nnothing of the builder\n", "169.254.169.254): No route to host\n", "arping: socket: Operation not permitted\n", "172.30.0.1", "\nPush successful\n"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	pod := p.Pod("app-1-build")
	if users, security := pod.Spec.HostUsers, pod.Spec.Containers[0].SecurityContext; users == nil || *users || *security.Privileged {
		t.Errorf("the pod has the users of the node (%v) or is privileged (%+v)", users, security)
	}
	digest := p.OC("get", "istag", "app:latest", "-o", "jsonpath={.image.metadata.name}")
	if got := p.OC("get", "build/app-1", "-o", "jsonpath={.status.phase} {.status.output.to.imageDigest} {.status.stages[*].name}"); got != "Complete "+digest+" Build PushImage" {
		t.Errorf("the build is %s, the image %s", got, digest)
	}
	if got := p.OC("get", "istag", "app:latest", "-o", "jsonpath={.image.dockerImageMetadata.Config.Env}"); !strings.Contains(got, `"WORD=hello"`) || !strings.Contains(got, "OPENSHIFT_BUILD_NAME=app-1") {
		t.Errorf("the image's environment is %s", got)
	}
	p.dockerConfig("bad", fmt.Sprintf("dockerfile: %q", "FROM "+p.base()+"\nADD http://169.254.169.254/latest /latest\n"), "app:latest")
	if log, err := p.TryOC("start-build", "bad", "--follow", "--wait"); err == nil || !strings.Contains(log, "no route to host") {
		t.Errorf("ADD can read metadata of the node: %v\n%s", err, log)
	}
	// Delete the image, so that the layers can come only from the node's cache.
	p.OC("delete", "istag", "app:latest")
	if log := p.OC("start-build", "app", "--follow", "--wait"); strings.Count(log, "Using cache") != 3 {
		t.Errorf("the second build builds its layers again:\n%s", log)
	}
	// Wait for the pod, which exits shortly after the build completes.
	p.waitOutput("pod/app-2-build", "{.status.phase}", "Succeeded")
}

func TestSourceBuildCreatesRunnableImage(t *testing.T) {
	p := newProject(t)
	// First build the builder image, also with a build.
	p.OC("create", "imagestream", "maker")
	p.dockerConfig("maker", "binary: {}", "maker:latest")
	maker := files(t, map[string]string{
		"Dockerfile": "FROM " + p.base() + "\n" + shell + "RUN /bin/busybox --install -s /bin; mkdir -p /tmp /app; chmod 777 /tmp /app\nCOPY s2i /s2i\n" +
			"ENV PATH=/bin\nENTRYPOINT []\nUSER 1001\nLABEL io.openshift.s2i.scripts-url=image:///s2i\n",
		"s2i/assemble": "#!/bin/sh\nset -e\nid -u >/app/user\ncp /tmp/src/code /app/code\n",
		"s2i/run":      "#!/bin/sh\ncat /app/code /app/user\n",
	})
	p.OC("start-build", "maker", "--from-dir="+maker, "--follow", "--wait")
	p.Apply(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {strategy: {sourceStrategy: {from: {kind: ImageStreamTag, name: "maker:latest"}}},
		source: {binary: {}}, output: {to: {kind: ImageStreamTag, name: "app:latest"}}}}`)
	p.OC("start-build", "app", "--from-dir="+files(t, map[string]string{"code": "output of the source\n"}), "--follow", "--wait")
	p.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: app}, spec: {restartPolicy: Never,
		containers: [{name: app, image: "docker-registry.default.svc:5000/%s/app:latest"}]}}`, p.Namespace))
	p.waitOutput("pod/app", "{.status.phase}", "Succeeded")
	if got := p.OC("logs", "app"); got != "output of the source\n1001\n" {
		t.Errorf("the application returns %q", got)
	}
}

// repository serves a Git repository with the given files at URL/.git. It returns the URL and the
// commit. Requests for repositories below URL/elsewhere are redirected to an address on the build's
// machine.
func (p *project) repository(content map[string]string) (url, commit string) {
	p.t.Helper()
	dir := p.t.TempDir()
	commit = p.commit(dir, content)
	mux := http.NewServeMux()
	mux.Handle("/elsewhere/", http.RedirectHandler("http://169.254.169.254/latest/info/refs?service=git-upload-pack", http.StatusFound))
	mux.Handle("/", repositories(dir))
	return p.serve(mux), commit
}

// commit creates a Git repository with one commit that contains the given files.
func (p *project) commit(dir string, content map[string]string) (commit string) {
	p.t.Helper()
	if err := os.CopyFS(dir, os.DirFS(files(p.t, content))); err != nil {
		p.t.Fatal(err)
	}
	var output []byte
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "-A"}, {"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"}, {"rev-parse", "HEAD"}} {
		var err error
		if output, err = exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			p.t.Fatalf("git %s: %v\n%s", args[0], err, output)
		}
	}
	return strings.TrimSpace(string(output))
}

// repositories serves the Git repositories in a directory.
func repositories(dir string) http.Handler {
	return &cgi.Handler{Path: "/usr/lib/git-core/git-http-backend", Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}}
}

// serve starts a server on the gateway's address, which builds can reach.
func (p *project) serve(handler http.Handler) (url string) {
	p.t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(p.Gateway.String(), "0"))
	if err != nil {
		p.t.Fatal(err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	p.t.Cleanup(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

func TestBuildRecordsRevisionOfRepository(t *testing.T) {
	p := newProject(t)
	url, commit := p.repository(map[string]string{"sub/Dockerfile": "FROM " + p.base() + "\nCOPY file /file\n", "sub/file": "content"})
	p.dockerConfig("app", fmt.Sprintf("git: {uri: %q, ref: main}, contextDir: sub", url+"/.git"), "app:latest")
	log := p.OC("start-build", "app", "--follow", "--wait")
	if !strings.Contains(log, "Cloning \""+url) || !strings.Contains(log, "Commit:\t"+commit+" (first)") {
		t.Errorf("the log is\n%s", log)
	}
	if got := p.OC("get", "build/app-1", "-o", "jsonpath={.spec.revision.git.commit} {.spec.revision.git.author.name} {.spec.revision.git.message}"); got != commit+" A first" {
		t.Errorf("the revision is %s", got)
	}
	if got := p.OC("get", "istag", "app:latest", "-o", `jsonpath={.image.dockerImageMetadata.Config.Labels.io\.openshift\.build\.commit\.id}`); got != commit {
		t.Errorf("the image's label is %s", got)
	}
	p.dockerConfig("bad", fmt.Sprintf("git: {uri: %q}", url+"/elsewhere/app.git"), "app:latest")
	if log, err := p.TryOC("start-build", "bad", "--follow", "--wait"); err == nil || !strings.Contains(log, "169.254.169.254, an address of the build's own machine") {
		t.Errorf("a repository that redirects to the metadata address: %v\n%s", err, log)
	}
	if got := p.OC("get", "build/bad-1", "-o", "jsonpath={.status.phase} {.status.reason}"); got != "Failed FetchSourceFailed" {
		t.Errorf("the build of this repository is %s", got)
	}
}
