package masters

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// reverse is a cipher whose output is readable in tests.
func reverse(content []byte) ([]byte, error) {
	content = slices.Clone(content)
	slices.Reverse(content)
	return content, nil
}

// newFiles returns the shared files of a master. The only file is "users".
func newFiles(t *testing.T, client *fake.Clientset) *SharedFiles {
	t.Helper()
	dir := t.TempDir()
	p := &SharedFiles{
		Client: client, Files: map[string]SharedFile{"users": {Path: filepath.Join(dir, "users")}}, Record: filepath.Join(dir, "record"),
		Seal: reverse, Open: reverse,
	}
	write(t, p, "ann\n")
	return p
}

func write(t *testing.T, p *SharedFiles, content string) {
	t.Helper()
	if err := os.WriteFile(p.Files["users"].Path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func content(t *testing.T, p *SharedFiles) string {
	t.Helper()
	data, err := os.ReadFile(p.Files["users"].Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// add adds a line to a master's file.
func add(t *testing.T, p *SharedFiles, line string) {
	t.Helper()
	if err := p.Change(t.Context(), "users", func() error { write(t, p, content(t, p)+line+"\n"); return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestFilesReachAllMasters(t *testing.T) {
	client := fake.NewClientset()
	first, second := newFiles(t, client), newFiles(t, client)
	componenttest.Run(t, second.Run)
	add(t, first, "bob")
	eventually.Equal(t, "file of the second master", func() string { return content(t, second) }, "ann\nbob\n")

	secret, err := client.CoreV1().Secrets("kube-system").Get(t.Context(), filesName, metav1.GetOptions{})
	if err != nil || string(secret.Data["users"]) != "\nbob\nnna" {
		t.Errorf("the Secret is not sealed: %q, %v", secret.Data, err)
	}

	// The first master's component is not running, so it has not read this change when it writes
	// its own change.
	add(t, second, "eve")
	add(t, first, "joe")
	eventually.Equal(t, "file of the second master", func() string { return content(t, second) }, "ann\nbob\neve\njoe\n")
}

func TestManualEditIsKeptUntilNextChange(t *testing.T) {
	client := fake.NewClientset()
	first, second := newFiles(t, client), newFiles(t, client)
	add(t, first, "bob")
	write(t, first, "edited\n")
	componenttest.Run(t, first.Run)
	add(t, first, "eve")
	componenttest.Run(t, second.Run)
	eventually.Equal(t, "file of the second master", func() string { return content(t, second) }, "edited\neve\n")
}

// TestCommandExcludesComponent changes a file in a process other than the component's process, as a
// command does. The component receives the change immediately.
func TestCommandExcludesComponent(t *testing.T) {
	component := newFiles(t, fake.NewClientset())
	command := &SharedFiles{Client: component.Client, Files: component.Files, Record: component.Record, Seal: reverse, Open: reverse}
	componenttest.Run(t, component.Run)
	want := content(t, command)
	for number := range 50 {
		line := fmt.Sprintf("user-%d", number)
		add(t, command, line)
		want += line + "\n"
	}
	if got := content(t, command); got != want {
		t.Errorf("the file is\n%s\nwant\n%s", got, want)
	}
}

func TestChangeIsRepeatedAfterConflict(t *testing.T) {
	client := fake.NewClientset()
	first, second := newFiles(t, client), newFiles(t, client)
	add(t, first, "bob")
	conflicts := 0
	client.PrependReactor("update", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts++; conflicts > 1 {
			return false, nil, nil
		}
		return true, nil, apierrors.NewConflict(corev1.Resource("secrets"), filesName, nil)
	})
	add(t, second, "eve")
	if got := content(t, second); got != "ann\nbob\neve\neve\n" || conflicts != 2 {
		t.Errorf("after %d attempts: %q", conflicts, got)
	}
}
