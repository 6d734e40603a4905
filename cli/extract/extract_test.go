package extract

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func TestKeysBecomeFiles(t *testing.T) {
	target := t.TempDir()
	dir, err := os.OpenRoot(target)
	if err != nil {
		t.Fatal(err)
	}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	e := &extraction{IOStreams: streams, target: target}
	contents, ok := contentsOf(&corev1.Secret{Data: map[string][]byte{"b": []byte("two"), "a": []byte("one")}})
	if !ok {
		t.Fatal("a secret has files")
	}
	if err := e.extract(dir, contents); err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(target, "a") + "\n" + filepath.Join(target, "b") + "\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	info, err := os.Stat(filepath.Join(target, "a"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := e.extract(dir, contents); err == nil || err.Error() != "a: file exists, pass --confirm to overwrite\nb: file exists, pass --confirm to overwrite" {
		t.Errorf("extract twice: %v", err)
	}
	e.overwrite = true
	if err := e.extract(dir, contents); err != nil {
		t.Errorf("overwrite: %v", err)
	}
}

func TestKeysCannotEscapeDirectory(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("..", filepath.Join(target, "up")); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(target)
	if err != nil {
		t.Fatal(err)
	}
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	e := &extraction{IOStreams: streams, target: target, overwrite: true}
	for _, key := range []string{"../escaped", "/escaped", "up/escaped"} {
		if err := e.extract(dir, map[string][]byte{key: []byte("x")}); err == nil {
			t.Errorf("key %q is written", key)
		}
	}
}

func TestChosenKeysArePrinted(t *testing.T) {
	streams, _, out, titles := genericiooptions.NewTestIOStreams()
	e := &extraction{IOStreams: streams, target: stdout, keys: []string{"b"}}
	contents, _ := contentsOf(&corev1.ConfigMap{Data: map[string]string{"a": "1", "b": "2"}})
	if err := e.extract(nil, contents); err != nil {
		t.Fatal(err)
	}
	if out.String() != "2\n" || titles.String() != "# b\n" {
		t.Errorf("printed %q with titles %q", out.String(), titles.String())
	}
	if _, ok := contentsOf(&corev1.Pod{}); ok {
		t.Error("a pod has no files")
	}
}
