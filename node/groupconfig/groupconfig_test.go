package groupconfig

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// fixture is a node named "second" in the node-config-infra group.
type fixture struct {
	t      *testing.T
	client *fake.Clientset
	dir    string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t, fake.NewClientset(
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second", Annotations: map[string]string{}}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-node", Name: "node-config-infra"}, Data: map[string]string{}},
	), t.TempDir()}
	if err := os.WriteFile(f.file(), []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fixture) file() string { return filepath.Join(f.dir, "node-config.yaml") }

// sync returns the component. If ready is set, the process becomes ready. The merged file is the
// ConfigMap's content. Content that begins with "labels" needs no restart, and "bad" is rejected.
func (f *fixture) sync(ready bool) *Sync {
	readiness := make(chan struct{})
	if ready {
		close(readiness)
	}
	return &Sync{
		Client: f.client, Node: "second", File: f.file(), Record: filepath.Join(f.dir, "group.json"), Ready: readiness, timeout: time.Millisecond,
		Merge: func(_, group []byte) (*Change, error) {
			if string(group) == "bad" {
				return nil, errors.New("the key x is not allowed")
			}
			return &Change{File: group, Applied: []byte(`{}`), Restart: !strings.HasPrefix(string(group), "labels")}, nil
		},
	}
}

// desire sets the ConfigMap's content and the node's desired configuration.
func (f *fixture) desire(content string) {
	f.t.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-node", Name: "node-config-infra"}, Data: map[string]string{"node-config.yaml": content}}
	if _, err := f.client.CoreV1().ConfigMaps("openshift-node").Update(f.t.Context(), configMap, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	node := f.node()
	node.Annotations[nodegroup.DesiredAnnotation] = nodegroup.Desired("node-config-infra", content)
	if _, err := f.client.CoreV1().Nodes().Update(f.t.Context(), node, metav1.UpdateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) node() *corev1.Node {
	f.t.Helper()
	node, err := f.client.CoreV1().Nodes().Get(f.t.Context(), "second", metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	return node
}

// restarts runs the component until it requests a restart.
func (f *fixture) restarts(s *Sync) {
	f.t.Helper()
	if err := s.Run(f.t.Context(), func() {}); !errors.Is(err, ErrRestart) {
		f.t.Fatalf("the component ended with %v, want a restart", err)
	}
}

// wantState waits until the node reports a state, and checks the file.
func (f *fixture) wantState(hashOf, refusedOf, reason, file string) {
	f.t.Helper()
	eventually.True(f.t, "the node reports "+reason, func() bool {
		node := f.node()
		conditions := node.Status.Conditions
		return node.Annotations[nodegroup.HashAnnotation] == hash(hashOf) && node.Annotations[nodegroup.RefusedAnnotation] == hash(refusedOf) &&
			len(conditions) == 1 && conditions[0].Reason == reason && (conditions[0].Status == corev1.ConditionTrue) == (refusedOf != "")
	})
	if content, err := os.ReadFile(f.file()); err != nil || string(content) != file {
		f.t.Errorf("the file contains %q, want %q: %v", content, file, err)
	}
}

func hash(content string) string {
	if content == "" {
		return ""
	}
	return nodegroup.Hash(content)
}

func TestProcessRestartsWithConfigurationOfGroup(t *testing.T) {
	f := newFixture(t)
	f.desire("one")
	f.restarts(f.sync(true))
	if f.node().Annotations[nodegroup.HashAnnotation] != "" {
		t.Error("the node reports the configuration before it is in effect")
	}
	running := componenttest.Run(t, f.sync(true).Run)
	f.wantState("one", "", reasonApplied, "one")
	events, err := f.client.CoreV1().Events("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 || events.Items[0].Reason != reasonApplied || events.Items[0].InvolvedObject.Name != "second" {
		t.Errorf("events are %+v, %v", events, err)
	}
	running.Stop()
}

func TestChangeOfLabelsNeedsNoRestart(t *testing.T) {
	f := newFixture(t)
	componenttest.Run(t, f.sync(true).Run)
	f.desire("labels")
	f.wantState("labels", "", reasonApplied, "labels")
}

func TestRejectedConfigurationChangesNothing(t *testing.T) {
	f := newFixture(t)
	componenttest.Run(t, f.sync(true).Run)
	f.desire("labels")
	f.wantState("labels", "", reasonApplied, "labels")
	f.desire("bad")
	f.wantState("labels", "bad", reasonRefused, "labels")
	if message := f.node().Status.Conditions[0].Message; message != "the key x is not allowed" {
		t.Errorf("message is %q", message)
	}
	f.desire("labels")
	f.wantState("labels", "", reasonApplied, "labels")
}

func TestConfigurationThatDoesNotBecomeReadyIsReverted(t *testing.T) {
	f := newFixture(t)
	f.desire("one")
	f.restarts(f.sync(true))
	f.restarts(f.sync(false)) // the process does not become ready before the timeout
	componenttest.Run(t, f.sync(true).Run)
	f.wantState("", "one", reasonReverted, "own")
}

func TestConfigurationThatEndsProcessIsReverted(t *testing.T) {
	f := newFixture(t)
	f.desire("one")
	f.restarts(f.sync(true))
	for range maxStarts {
		s := f.sync(false)
		s.timeout = time.Hour
		componenttest.Run(t, s.Run).Stop() // another component ends the process
	}
	f.restarts(f.sync(true))
	componenttest.Run(t, f.sync(true).Run)
	f.wantState("", "one", reasonReverted, "own")
}

func TestChangeIsRepeatedAfterCrashBeforeWrite(t *testing.T) {
	f := newFixture(t)
	f.desire("one")
	f.restarts(f.sync(true))
	// Simulate a kill after the record was written.
	if err := os.WriteFile(f.file(), []byte("own"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.restarts(f.sync(true))
	componenttest.Run(t, f.sync(true).Run)
	f.wantState("one", "", reasonApplied, "one")
}
