package builder

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	buildv1 "github.com/openshift/api/build/v1"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/builder/source"
)

// TestMain is the test, or in a process that a test starts a build.
func TestMain(m *testing.M) {
	told := os.Getenv(processVariable)
	if told == "" {
		os.Exit(m.Run())
	}
	b := &Builder{}
	if err := json.Unmarshal([]byte(told), b); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	b.Report = func(context.Context, *buildv1.Build) error { return nil }
	b.Variable, b.In, b.Out, b.Limit, b.Git.Forbidden = os.Getenv, os.Stdin, os.Stdout, source.NewLimit(), source.Own
	if b.Run(context.Background()) != nil {
		os.Exit(1)
	}
}

// processVariable tells a process which build it is.
const processVariable = "BUILDER_TEST"

// inProcess builds in a process of its own, as builds do, and returns its log.
func (s *site) inProcess(spec buildv1.CommonSpec, upload []byte) string {
	s.t.Helper()
	told, err := json.Marshal(map[string]any{
		"Build": &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "team", Labels: s.labels}, Spec: buildv1.BuildSpec{CommonSpec: spec}},
		"Work":  s.t.TempDir(), "Cache": s.cache, "Secrets": s.secrets, "ConfigMaps": s.configs, "Runc": s.runc,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	command := exec.CommandContext(s.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), processVariable+"="+string(told))
	for name, value := range s.variables {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdin = bytes.NewReader(upload)
	log, err := command.CombinedOutput()
	if err != nil {
		s.t.Fatalf("%v\n%s", err, log)
	}
	return string(log)
}

// stages is a Dockerfile of which the image remembers only the last stage.
func (s *site) stages() string {
	s.t.Helper()
	base := s.base("one", nil, v1.Config{})
	return "FROM " + base + " AS made\nRUN echo made >/made\nFROM " + base + "\nCOPY --from=made /made /made\nRUN echo more >/more\n"
}

func TestLayersAreKeptForTheNextBuild(t *testing.T) {
	s := newSite(t)
	s.cache = t.TempDir()
	spec := inline(s.stages(), buildv1.DockerBuildStrategy{})
	for _, tt := range []struct {
		name   string
		before func() error
		kept   int
	}{
		{"the first", func() error { return nil }, 0},
		{"the second", func() error { return nil }, 3},
		{"one after a builder that was killed", func() error { return os.Remove(filepath.Join(s.cache, "whole")) }, 0},
		{"one of another version", func() error { s.variables["ORIGIN_VERSION"] = "v2"; return nil }, 0},
		{"the next of that version", func() error { return nil }, 3},
		{"one with a store that is damaged", func() error {
			found, err := filepath.Glob(filepath.Join(s.cache, "engine", "*", "containerdmeta.db"))
			if err != nil || len(found) != 1 {
				return fmt.Errorf("there are %q: %w", found, err)
			}
			return os.WriteFile(found[0], make([]byte, 1<<14), 0o600)
		}, 0},
		{"the next which throws it away", func() error { return nil }, 0},
		{"the last", func() error { return nil }, 3},
	} {
		if err := tt.before(); err != nil {
			t.Fatal(err)
		}
		spec.Output.To = &corev1.ObjectReference{Kind: "DockerImage", Name: s.host + "/team/" + strings.ReplaceAll(tt.name, " ", "-")}
		log := s.inProcess(spec, nil)
		if got := strings.Count(log, "Using cache"); got != tt.kept {
			t.Errorf("%s takes %d layers over, want %d:\n%s", tt.name, got, tt.kept, log)
		}
	}
}

func TestABuildWhoseStoreAnotherHasGoesOnWithout(t *testing.T) {
	s := newSite(t)
	s.cache, s.labels = t.TempDir(), map[string]string{buildv1.BuildRunPolicyLabel: "Parallel"}
	lock, err := os.Create(filepath.Join(s.cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, log := s.must(inline(s.stages(), buildv1.DockerBuildStrategy{}), nil); !strings.Contains(log, "layers of earlier builds are not used: another build has them") {
		t.Errorf("the log does not say so:\n%s", log)
	}
	if entries, err := os.ReadDir(s.cache); err != nil || len(entries) != 1 {
		t.Errorf("in the other's store are %v, %v", entries, err)
	}
}

func TestSecretsOfTheSourceAreNotKept(t *testing.T) {
	s := newSite(t)
	s.cache = t.TempDir()
	const word = "nobody shall read this"
	s.write(filepath.Join(s.secrets, "build", "password"), map[string]string{"word": word})
	spec := binary(dockerStrategy(buildv1.DockerBuildStrategy{}))
	spec.Source.Secrets = []buildv1.SecretBuildSource{{Secret: corev1.LocalObjectReference{Name: "password"}}}
	dockerfile := "FROM " + s.base("one", nil, v1.Config{}) + "\nCOPY . /all\nRUN cat /all/word >/said; echo gone >/all/word\n"
	if made, log := s.must(spec, bytes.NewReader(tarOf(t, map[string]string{"Dockerfile": dockerfile}))); made.files["said"] != word {
		t.Fatalf("the build did not see the secret: %v\n%s", made.files, log)
	}
	err := filepath.WalkDir(s.cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Base(path) != "word" {
			return err
		}
		content, err := os.ReadFile(path)
		if strings.Contains(string(content), word) && !strings.Contains(path, "/all/") { // there it is the image's
			t.Errorf("%s has the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
