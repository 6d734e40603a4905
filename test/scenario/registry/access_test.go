package registry

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	other "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// routeHost is the host name of the registry's route, in the domain that main_test.go configures.
const routeHost = "docker-registry-default.apps.example.com"

func TestExternalClientsUseRoute(t *testing.T) {
	p := newProject(t)
	for flag, want := range map[string]string{"--public": routeHost, "--internal": "docker-registry.default.svc:5000"} {
		if got := p.OC("registry", "info", flag); strings.TrimSpace(got) != want {
			t.Errorf("oc registry info %s prints %q, want %s", flag, got, want)
		}
	}
	// The command must print the master's address, because the test's machine can resolve neither
	// the route's host name nor the service's name.
	if got := p.OC("registry", "info", "--check"); strings.Contains(got, "docker-registry") || !strings.Contains(got, ":5000") {
		t.Errorf("oc registry info prints %q, want the address of the master", got)
	}
	file := filepath.Join(t.TempDir(), "auth.json")
	p.OC("registry", "login", "-z", "pusher", "--to", file)
	p.OC("registry", "login", "-z", "pusher", "--to", file, "--registry", routeHost, "--skip-check")
	var login struct {
		Auths map[string]authn.AuthConfig `json:"auths"`
	}
	content, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(content, &login)
	}
	if err != nil || login.Auths[routeHost].Password == "" {
		t.Fatalf("oc registry login wrote %d registries, %v", len(login.Auths), err)
	}
	options := []remote.Option{remote.WithTransport(p.transport()), remote.WithAuth(authn.FromConfig(login.Auths[routeHost]))}
	image, tag := p.noise(1000), p.tag(routeHost, "app:v1")
	p.WaitFor("a push by the route", func(context.Context) error { return remote.Write(tag, image, options...) })
	if err := checkContent(tag, options...); err != nil {
		t.Error(err)
	}
	if err := remote.CheckPushPermission(tag, authn.NewMultiKeychain(), p.transport()); err == nil {
		t.Error("a client without credentials can push by the route")
	}

	// A client that can pull an image must be able to list the image's referrers by its digest.
	subject, err := remote.Head(tag, options...)
	if err != nil {
		t.Fatal(err)
	}
	bill := mutate.Subject(mutate.ConfigMediaType(p.noise(10), "application/vnd.example.bill"), *subject).(v1.Image)
	id, err := bill.Digest()
	if err == nil {
		err = remote.Write(tag.Context().Digest(id.String()), bill, options...)
	}
	if err != nil {
		t.Fatal(err)
	}
	of := tag.Context().Digest(subject.Digest.String())
	index, err := remote.Referrers(of, append(options, remote.WithFilter("artifactType", "application/vnd.example.bill"))...)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, err := index.IndexManifest(); err != nil || len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != id {
		t.Errorf("referrers %+v, %v, want %s", manifest, err, id)
	}
	if status, body := p.request(http.MethodGet, "/v2/"+p.Namespace+"/app/referrers/"+of.DigestStr(), newProjectOf(t, p), ""); status != http.StatusForbidden {
		t.Errorf("referrers for a user without rights: %d %s", status, body)
	}
}

func TestAccountsOfNewProjectPushAndPull(t *testing.T) {
	p := newProject(t)
	dir, _ := image(t, "fresh")
	var password string
	p.WaitFor("the builder's credentials push", func(context.Context) error {
		secret, err := p.TryOC("get", "serviceaccount", "builder", "-o", "jsonpath={.imagePullSecrets[0].name}")
		if err != nil || secret == "" {
			return fmt.Errorf("no secret: %v", err)
		}
		encoded, err := p.TryOC("get", "secret", secret, "-o", `jsonpath={.data.\.dockercfg}`)
		if err != nil {
			return err
		}
		content, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return err
		}
		var entries map[string]authn.AuthConfig
		if err := json.Unmarshal(content, &entries); err != nil {
			return err
		}
		password = entries["docker-registry.default.svc:5000"].Password
		return p.push(dir, "app:v1", password)
	})
	// A pod with the service account `default` must be able to pull without an additional pull
	// secret.
	p.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: app}, spec: {containers: [
		{name: app, image: "docker-registry.default.svc:5000/%s/app:v1", imagePullPolicy: Always}]}}`, p.Namespace))
	p.WaitPodRunning("app")
}

// private starts an external registry with one image. The registry requires a user name and a
// password.
func private(p *project, image v1.Image) (reference, host string) {
	p.t.Helper()
	listener, err := listen(p)
	if err != nil {
		p.t.Fatal(err)
	}
	images := other.New(other.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)))
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "team" || password != "secret" {
			w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
			http.Error(w, "log in", http.StatusUnauthorized)
			return
		}
		images.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	p.t.Cleanup(func() { _ = server.Close() })
	host = listener.Addr().String()
	tag, err := name.NewTag(host+"/team/app:v1", name.Insecure)
	if err == nil {
		err = remote.Write(tag, mutate.MediaType(image, types.DockerManifestSchema2), remote.WithAuth(&authn.Basic{Username: "team", Password: "secret"}))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return host + "/team/app:v1", host
}

// hosts sets a registry's address in containerd's hosts.toml on the node, as an administrator does.
func hosts(p *project, registry, at string) {
	p.t.Helper()
	dir := p.Path("registries.d", registry)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "hosts.toml"), fmt.Appendf(nil, "[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+at), 0o644)
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

func TestPullSecretsGiveAccessToPrivateRegistry(t *testing.T) {
	p := newProject(t)
	_, result := image(t, "private")
	reference, host := private(p, result)
	hosts(p, host, host)
	stream := func(name string) string {
		return fmt.Sprintf(`{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: %s}, spec: {tags: [
			{name: v1, from: {kind: DockerImage, name: %q}, importPolicy: {insecure: true}, referencePolicy: {type: Local}}]}}`, name, reference)
	}
	importTag := func(stream, want string) {
		t.Helper()
		p.WaitFor("the import of "+stream+" is "+want, func(context.Context) error {
			got, err := p.TryOC("get", "is", stream, "-o", "jsonpath={.status.tags[0].items[0].image}{.status.tags[0].conditions[0].reason}")
			if err == nil && !strings.HasPrefix(got, want) {
				err = fmt.Errorf("it is %q", got)
			}
			return err
		})
	}
	p.Apply(stream("refused"))
	importTag("refused", "Unauthorized")

	p.OC("create", "secret", "docker-registry", "team", "--docker-server="+host, "--docker-username=team", "--docker-password=secret")
	p.Apply(stream("app"))
	importTag("app", "sha256:")
	if _, err := p.pull("app:v1", p.token); err != nil {
		t.Errorf("pull through the stream: %v", err)
	}
	for name, secrets := range map[string]string{"direct": "imagePullSecrets: [{name: team}], ", "refused": ""} {
		p.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {%scontainers: [{name: app, image: %q, imagePullPolicy: Always}]}}`, name, secrets, reference))
	}
	p.WaitPodRunning("direct")
	p.WaitFor("rejection of a pod without the secret", func(context.Context) error {
		got, err := p.TryOC("get", "pod", "refused", "-o", "jsonpath={.status.containerStatuses[0].state.waiting.reason}")
		if err == nil && got != "ErrImagePull" && got != "ImagePullBackOff" {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

func TestNodePullsThroughMirror(t *testing.T) {
	p := newProject(t)
	_, result := image(t, "mirrored")
	reference, _ := externalImage(p, result)
	host, _, _ := strings.Cut(reference, "/")
	hosts(p, "images.example.com", host) // this host name does not resolve
	p.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: app}, spec: {containers: [{name: app, image: "images.example.com/team/app:v1", imagePullPolicy: Always}]}}`)
	p.WaitPodRunning("app")
}
