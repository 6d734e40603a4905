package catalog

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// bundleRegistry starts a registry that contains bundles with the given names.
func bundleRegistry(t *testing.T, c *kit.Cluster, names ...string) (host string) {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Distant.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)))}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	for _, bundle := range names {
		tag, err := name.NewTag(listener.Addr().String()+"/"+bundle+":stable", name.Insecure)
		if err == nil {
			err = remote.Write(tag, bundleImage(t, strings.ReplaceAll(refusedSpec, "rights-apb", bundle[strings.LastIndex(bundle, "/")+1:])))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return listener.Addr().String()
}

// configureRegistries changes the settings for the bundle broker's registries until the test ends.
func configureRegistries(t *testing.T, c *kit.Cluster, registries string) {
	t.Helper()
	before, err := os.ReadFile(c.MasterFile())
	if err != nil {
		t.Fatal(err)
	}
	var master map[string]any
	if err := yaml.Unmarshal(before, &master); err != nil {
		t.Fatal(err)
	}
	var broker map[string]any
	if err := yaml.Unmarshal([]byte(registries), &broker); err != nil {
		t.Fatal(err)
	}
	master["ansibleServiceBrokerConfig"] = broker
	changed, err := yaml.Marshal(master)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(content []byte) {
		t.Helper()
		if err := os.WriteFile(c.MasterFile(), content, 0o600); err != nil {
			t.Fatal(err)
		}
		c.Kill("control-plane")
		c.WaitFor("the API server", func(context.Context) error {
			_, err := c.TryOC("get", "--raw", "/readyz")
			return err
		})
	}
	t.Cleanup(func() { apply(before) })
	apply(changed)
}

func TestBundlesOfOtherRegistriesAreOffered(t *testing.T) {
	c := kit.Shared(t)
	host := bundleRegistry(t, c, "team/listed-apb", "team/unlisted-apb", "hub/first-apb", "hub/second-apb", "hub/a-b-apb", "hub/a/b-apb", "hub/tool", "stranger/third-apb")
	pushBundle(t, c, "own-apb", strings.ReplaceAll(refusedSpec, "rights-apb", "own-apb"))
	const broker = "openshift-ansible-service-broker"
	c.In(broker).OC("create", "secret", "generic", "cloud", "--from-literal=count=3")
	t.Cleanup(func() { c.In(broker).OC("delete", "secret/cloud") })
	configureRegistries(t, c, fmt.Sprintf(`
namespaces: []
secrets: [{title: Number for the cloud, secret: cloud, apbName: own-apb}]
registries:
- {name: listed, type: openshift, url: "https://%[1]s", images: [team/listed-apb], tag: stable, insecure: true}
- {name: hub, type: dockerhub, url: "https://%[1]s", org: hub, tag: stable, insecure: true, blackList: [^second-]}
- {name: own, type: local_openshift, namespaces: [openshift], whiteList: [^own-apb$]}
`, host))
	for _, tag := range []string{"listed-team-listed-apb:latest", "hub-hub-first-apb:latest"} {
		c.WaitFor("the import of "+tag, func(context.Context) error {
			_, err := c.TryOC("get", "istag", tag, "-n", broker)
			if err != nil {
				streams, _ := c.TryOC("get", "imagestreams", "-n", broker, "-o", `jsonpath={range .items[*]}{.metadata.name} {.status}{"\n"}{end}`)
				warnings := c.Slipway("logs", "control-plane", "--tail=-1", "--grep=cannot import bundles").Stdout
				err = fmt.Errorf("%w\n%s%s", err, streams, warnings)
			}
			return err
		})
	}
	for _, class := range []string{"listed-apb", "first-apb", "own-apb", "a-b-apb", "b-apb"} {
		relist(c, class)
	}
	// The secret sets one of the bundle's parameters, so users cannot set this parameter.
	for bundle, want := range map[string]string{"own-apb": "", "first-apb": "count"} {
		if got := c.OC("get", "bundles.automationbroker.io", "-n", broker, "-o", `jsonpath={.items[?(@.spec.fqName=="`+bundle+`")].spec.plans[*].parameters[*].name}`); got != want {
			t.Errorf("the parameters of %s are %q, want %q", bundle, got, want)
		}
	}
	classes := c.OC("get", "clusterserviceclasses", "-o", "jsonpath={.items[*].spec.externalName}")
	for _, class := range []string{"unlisted-apb", "second-apb", "third-apb"} {
		if strings.Contains(classes, class) {
			t.Errorf("the broker offers %s: %s", class, classes)
		}
	}
	// The broker must refer to the imported image by its address in the cluster's registry.
	images := c.OC("get", "bundles.automationbroker.io", "-n", broker, "-o", `jsonpath={range .items[*]}{.spec.fqName} {.spec.image}{"\n"}{end}`)
	if !strings.Contains(images, "listed-apb docker-registry.default.svc:5000/"+broker+"/listed-team-listed-apb@sha256:") {
		t.Errorf("the images are\n%s", images)
	}
}
