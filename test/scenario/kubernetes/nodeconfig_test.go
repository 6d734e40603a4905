package kubernetes

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestNodeRunsManifestsOfDirectory creates, changes and removes a manifest in the node's manifest
// directory.
func TestNodeRunsManifestsOfDirectory(t *testing.T) {
	c := kit.Shared(t)
	dir := c.Path("node", "pods")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	name := "static-" + c.NodeName()
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
		waitLeaving(c, name)
	})
	write := func(labels string) {
		t.Helper()
		manifest := strings.Replace(pod("static", "terminationGracePeriodSeconds: 1", sleeper()), "labels: {", fmt.Sprintf("namespace: %s, labels: {%s, ", c.Namespace, labels), 1)
		if err := os.WriteFile(filepath.Join(dir, "static.yaml"), []byte(manifest), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version: one")
	static := c.WaitPodRunning(name)
	if static.Annotations[corev1.MirrorPodAnnotationKey] == "" || static.Spec.NodeName != c.NodeName() {
		t.Errorf("pod %v on node %q is not a static pod", static.Annotations, static.Spec.NodeName)
	}
	write("version: two")
	c.WaitFor("changed static pod", func(context.Context) error {
		list, err := c.TryOC("get", "pod", name, "-o", "jsonpath={.metadata.labels.version} {.status.phase}")
		if err == nil && list != "two Running" {
			err = fmt.Errorf("it is %q", list)
		}
		return err
	})
}

func TestKubeletHasSettingsOfNodeConfig(t *testing.T) {
	c := kit.Shared(t)
	expect(t, c.OC("get", "--raw", "/api/v1/nodes/"+c.NodeName()+"/proxy/configz"),
		`"fileCheckFrequency":"1s"`, `"cacheTTL":"4m0s"`, `"cacheAuthorizedTTL":"3m0s"`,
		`"contentType":"application/json"`, `"kubeAPIQPS":60`, `"kubeAPIBurst":120`)
}

func TestFeatureGatesAreSetByArguments(t *testing.T) {
	c := kit.Shared(t)
	expect(t, c.OC("get", "--raw", "/api/v1/nodes/"+c.NodeName()+"/proxy/configz"), `"RotateKubeletServerCertificate":false`)
	// The feature gate disables compression, so the API server must not compress this large
	// response.
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "large"}, Data: map[string]string{"text": strings.Repeat("text ", 50_000)}}
	if _, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(t.Context(), large, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(c.Config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(c.Config.Host + kit.CorePath(c.Namespace, "configmaps/large"))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.Uncompressed || resp.StatusCode != http.StatusOK {
		t.Errorf("%s, compressed %t, want an uncompressed response", resp.Status, resp.Uncompressed)
	}
}

// TestNodeRunsManifestsOfURL changes and removes a manifest on a web server. The web server
// requires a header in requests.
func TestNodeRunsManifestsOfURL(t *testing.T) {
	// Do not share this cluster with other tests, because the kubelet deletes no pods while the web
	// server is unavailable.
	c := kit.New(t, kit.Options{Node: `
kubeletArguments:
  manifest-url: ["http://127.0.0.1:18017/pods.yaml"]
  manifest-url-header: ["X-Node:of the shop"]
  http-check-frequency: [1s]
`})
	var content atomic.Value
	content.Store("")
	server := &httptest.Server{Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Node") != "of the shop" {
			http.Error(w, "the header is missing", http.StatusForbidden)
			return
		}
		_, _ = io.WriteString(w, content.Load().(string))
	})}}
	if err := c.Do(func() (err error) {
		server.Listener, err = net.Listen("tcp", "127.0.0.1:18017")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	server.Start()
	t.Cleanup(server.Close)
	write := func(version string) {
		labels := fmt.Sprintf("namespace: default, labels: {version: %s, ", version)
		content.Store(strings.Replace(pod("remote", sleeper()), "labels: {", labels, 1))
	}
	write("one")
	c.Up()
	name := "remote-" + c.NodeName()
	remote := c.WaitPodRunning(name)
	if source := remote.Annotations["kubernetes.io/config.source"]; source != "http" || remote.Annotations[corev1.MirrorPodAnnotationKey] == "" {
		t.Errorf("the pod comes from %q, with annotations %v", source, remote.Annotations)
	}
	write("two")
	c.WaitFor("changed pod", func(context.Context) error {
		got, err := c.TryOC("get", "pod", name, "-o", "jsonpath={.metadata.labels.version} {.status.phase}")
		if err == nil && got != "two Running" {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
	content.Store("")
	waitLeaving(c, name)
}
