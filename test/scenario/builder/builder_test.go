// Package builder proves on a real cluster that the program in the pods of builds makes images of Dockerfiles and of source, without a privilege on the node,
// and pushes them to the cluster's own registry. The pods are made by hand here; test/scenario/build has the API before them.
package builder

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// registryHost is the cluster's registry as pods name it.
const registryHost = "docker-registry.default.svc:5000"

// project is a test's project, whose account builder builds.
type project struct {
	*kit.Cluster
	t *testing.T
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{kit.Shared(t), t}
	p.WaitFor("credentials of the account builder", func(context.Context) error {
		_, err := p.dockercfg()
		return err
	})
	return p
}

// dockercfg is the secret with which the account builder pushes.
func (p *project) dockercfg() (string, error) {
	names, err := p.TryOC("get", "serviceaccount", "builder", "-o", "jsonpath={.imagePullSecrets[*].name}")
	if err == nil && strings.TrimSpace(names) == "" {
		err = fmt.Errorf("it has none")
	}
	return strings.TrimSpace(names), err
}

// base puts an image with a shell into the project's registry and returns its reference.
func (p *project) base() string {
	p.t.Helper()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		p.t.Fatal(err)
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, name := range []string{"bin/busybox", "bin/sh"} {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(busybox))}); err != nil {
			p.t.Fatal(err)
		}
		if _, err := writer.Write(busybox); err != nil {
			p.t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		p.t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive.Bytes())), nil })
	if err != nil {
		p.t.Fatal(err)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH})
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	authority, err := os.ReadFile(p.Path("pki", "ca.crt"))
	if err != nil {
		p.t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	tag, err := name.NewTag(p.Address.String() + ":5000/" + p.Namespace + "/base:latest")
	if err != nil {
		p.t.Fatal(err)
	}
	err = remote.Write(tag, image, remote.WithAuth(&authn.Basic{Username: "any", Password: strings.TrimSpace(p.OC("create", "token", "builder"))}),
		remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}))
	if err != nil {
		p.t.Fatal(err)
	}
	return registryHost + "/" + p.Namespace + "/base:latest"
}

// build runs the pod of a build and returns its log and whether it succeeded.
func (p *project) build(name string, spec buildv1.CommonSpec) (log string, ok bool) {
	p.t.Helper()
	build := &buildv1.Build{
		TypeMeta:   metav1.TypeMeta{APIVersion: "build.openshift.io/v1", Kind: "Build"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.Namespace}, Spec: buildv1.BuildSpec{CommonSpec: spec},
	}
	text, err := json.Marshal(build)
	if err != nil {
		p.t.Fatal(err)
	}
	secret, err := p.dockercfg()
	if err != nil {
		p.t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name + "-build"},
		Spec: corev1.PodSpec{
			ServiceAccountName: "builder", RestartPolicy: corev1.RestartPolicyNever, HostUsers: ptr.To(false),
			Volumes: []corev1.Volume{
				{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "push", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}}},
			},
			Containers: []corev1.Container{{
				Name: "docker-build", Image: "localhost/slipway-builder:current", ImagePullPolicy: corev1.PullIfNotPresent,
				Env: []corev1.EnvVar{{Name: "BUILD", Value: string(text)}},
				VolumeMounts: []corev1.VolumeMount{
					{Name: "work", MountPath: "/var/lib/slipway-builder"}, {Name: "push", MountPath: "/var/run/secrets/openshift.io/push"},
				},
				SecurityContext: &corev1.SecurityContext{
					ProcMount:      ptr.To(corev1.UnmaskedProcMount),
					SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined},
					Capabilities:   &corev1.Capabilities{Add: []corev1.Capability{"SYS_ADMIN"}},
				},
			}},
		},
	}
	if _, err := p.Client.CoreV1().Pods(p.Namespace).Create(p.t.Context(), pod, metav1.CreateOptions{}); err != nil {
		p.t.Fatal(err)
	}
	p.WaitFor("build "+name, func(ctx context.Context) error {
		pod, err := p.Client.CoreV1().Pods(p.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		ok = pod.Status.Phase == corev1.PodSucceeded
		if !ok && pod.Status.Phase != corev1.PodFailed {
			return fmt.Errorf("its pod is %s", pod.Status.Phase)
		}
		return nil
	})
	return p.OC("logs", pod.Name), ok
}

func docker(text string, p *project) buildv1.CommonSpec {
	return buildv1.CommonSpec{
		Source:   buildv1.BuildSource{Dockerfile: &text},
		Strategy: buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{}},
		Output:   buildv1.BuildOutput{To: &corev1.ObjectReference{Kind: "DockerImage", Name: registryHost + "/" + p.Namespace + "/app:latest"}},
	}
}

func TestADockerfileIsBuiltAndPushed(t *testing.T) {
	p := newProject(t)
	log, ok := p.build("app-1", docker(fmt.Sprintf(`
FROM %s AS made
RUN echo hello >/made
FROM scratch
COPY --from=made /made /made
ENV WORD=hello
`, p.base()), p))
	if !ok {
		t.Fatal(log)
	}
	if got := p.OC("get", "istag", "app:latest", "-o", "jsonpath={.image.dockerImageMetadata.Config.Env}"); !strings.Contains(got, "WORD=hello") {
		t.Errorf("the image has %s", got)
	}
}
