package kit

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shared is a test process's shared cluster. The first test that needs the cluster boots it. No
// test owns the cluster, because it outlives that test.
var shared struct {
	once    sync.Once
	options Options
	cluster *Cluster
	err     error
	// second and distant are additional hosts, which exist if a test needs them.
	second, distant sharedHost
}

// Main implements a package's TestMain. It runs the tests, takes the shared cluster down, and fails
// the package if anything remains.
func Main(m *testing.M) { MainWith(m, Options{}) }

// MainWith works like Main, but gives the shared cluster the given options.
func MainWith(m *testing.M, options Options) {
	shared.options = options
	code := m.Run()
	for _, cluster := range []*Cluster{shared.distant.host, shared.second.host, shared.cluster} {
		if cluster == nil {
			continue
		}
		for _, problem := range cluster.end() {
			fmt.Fprintln(os.Stderr, "after the tests:", problem)
			code = 1
		}
	}
	os.Exit(code)
}

// Shared returns the cluster that the tests in a package share, because a boot takes seconds. The
// package's TestMain must call Main. Each test has its own namespace, which is deleted at the end
// of the test. A test that stops or damages the cluster must use Start instead.
func Shared(t testing.TB) *Cluster {
	t.Helper()
	return SharedIn(t, namespaceOf(t.Name()))
}

// SharedIn works like Shared, but the test's namespace has the given name. It is intended for tests
// whose screenshots show the namespace.
func SharedIn(t testing.TB, namespace string) *Cluster {
	t.Helper()
	shared.once.Do(func() {
		if shared.cluster, shared.err = prepare(shared.options); shared.err == nil {
			_, shared.err = shared.cluster.up()
		}
	})
	if shared.err != nil {
		t.Fatalf("boot shared cluster: %v", shared.err)
	}
	c := *shared.cluster
	c.t, c.Namespace = t, namespace
	c.createNamespace()
	return &c
}

// createNamespace creates the test's namespace and waits until it accepts pods.
func (c *Cluster) createNamespace() {
	c.t.Helper()
	namespaces := c.Client.CoreV1().Namespaces()
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: c.Namespace}}
	// With -count, the previous run's namespace might still be terminating.
	c.WaitFor("namespace "+c.Namespace, func(ctx context.Context) error {
		_, err := namespaces.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	c.t.Cleanup(func() {
		if c.t.Failed() {
			c.diagnose(c.t)
		}
		if keepsClusters() {
			return
		}
		if err := namespaces.Delete(context.Background(), c.Namespace, metav1.DeleteOptions{}); err != nil {
			c.t.Error(err)
		}
	})
	c.WaitFor("default service account", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().ServiceAccounts(c.Namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// namespaceOf returns a test's namespace, such as podhasaddress-case-1 for
// TestPodHasAddress/case_1.
func namespaceOf(test string) string {
	name := notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(test, "Test")), "-")
	return strings.Trim(name[:min(len(name), 63)], "-")
}
