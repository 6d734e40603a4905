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

// TestMain runs the tests, or, in a process that a test has started, a build.
func TestMain(m *testing.M) {
	config := os.Getenv(processVariable)
	if config == "" {
		os.Exit(m.Run())
	}
	b := &Builder{}
	if err := json.Unmarshal([]byte(config), b); err != nil {
		fmt.Println(err)
		os.Exit(2)
	}
	b.Report = func(context.Context, *buildv1.Build) error { return nil }
	b.Variable, b.In, b.Out, b.Limit, b.Git.Forbidden = os.Getenv, os.Stdin, os.Stdout, source.NewLimit(), source.LocalAddress
	if b.Run(context.Background()) != nil {
		os.Exit(1)
	}
}

// processVariable is the environment variable that contains the configuration of a Builder.
const processVariable = "BUILDER_TEST"

// inProcess runs a build in a separate process and returns its log.
func (s *fixture) inProcess(spec buildv1.CommonSpec, upload []byte) string {
	s.t.Helper()
	config, err := json.Marshal(map[string]any{
		"Build": &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "team", Labels: s.labels}, Spec: buildv1.BuildSpec{CommonSpec: spec}},
		"Work":  s.t.TempDir(), "Cache": s.cache, "Secrets": s.secrets, "ConfigMaps": s.configs, "Runc": s.runc,
	})
	if err != nil {
		s.t.Fatal(err)
	}
	command := exec.CommandContext(s.t.Context(), os.Args[0])
	command.Env = append(os.Environ(), processVariable+"="+string(config))
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

// stages returns a Dockerfile with two stages. The first stage can be reused only from the store,
// because an image's inline cache contains only the last stage.
func (s *fixture) stages() string {
	s.t.Helper()
	base := s.base("one", nil, v1.Config{})
	return "FROM " + base + " AS got\nRUN echo got >/got\nFROM " + base + "\nCOPY --from=got /got /got\nRUN echo more >/more\n"
}

func TestStoreKeepsLayersForNextBuild(t *testing.T) {
	s := newFixture(t)
	s.cache = t.TempDir()
	spec := inline(s.stages(), buildv1.DockerBuildStrategy{})
	for _, tt := range []struct {
		name   string
		before func() error
		want   int
	}{
		{"first build", func() error { return nil }, 0},
		{"second build", func() error { return nil }, 3},
		{"after a killed builder", func() error { return os.Remove(filepath.Join(s.cache, "whole")) }, 0},
		{"after an upgrade", func() error { s.variables["ORIGIN_VERSION"] = "v2"; return nil }, 0},
		{"second build of the version", func() error { return nil }, 3},
		{"damaged store", func() error {
			files, err := filepath.Glob(filepath.Join(s.cache, "engine", "*", "containerdmeta.db"))
			if err != nil || len(files) != 1 {
				return fmt.Errorf("found databases %q: %w", files, err)
			}
			return os.WriteFile(files[0], make([]byte, 1<<14), 0o600)
		}, 0},
		{"store deleted", func() error { return nil }, 0},
		{"last build", func() error { return nil }, 3},
	} {
		if err := tt.before(); err != nil {
			t.Fatal(err)
		}
		spec.Output.To = &corev1.ObjectReference{Kind: "DockerImage", Name: s.host + "/team/" + strings.ReplaceAll(tt.name, " ", "-")}
		log := s.inProcess(spec, nil)
		if got := strings.Count(log, "Using cache"); got != tt.want {
			t.Errorf("%s: reused %d layers, want %d:\n%s", tt.name, got, tt.want, log)
		}
	}
}

func TestBuildWithoutLockRunsWithoutStore(t *testing.T) {
	s := newFixture(t)
	s.cache, s.labels = t.TempDir(), map[string]string{buildv1.BuildRunPolicyLabel: "Parallel"}
	lock, err := os.Create(filepath.Join(s.cache, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, log := s.mustBuild(inline(s.stages(), buildv1.DockerBuildStrategy{}), nil); !strings.Contains(log, "cannot use layers of earlier builds: another build is using them") {
		t.Errorf("the log lacks the reason:\n%s", log)
	}
	if entries, err := os.ReadDir(s.cache); err != nil || len(entries) != 1 {
		t.Errorf("the other store contains %v, %v", entries, err)
	}
}

func TestStoreKeepsNoSecretsOfSource(t *testing.T) {
	s := newFixture(t)
	s.cache = t.TempDir()
	const word = "secret in the source"
	s.write(filepath.Join(s.secrets, "build", "password"), map[string]string{"word": word})
	spec := binary(dockerStrategy(buildv1.DockerBuildStrategy{}))
	spec.Source.Secrets = []buildv1.SecretBuildSource{{Secret: corev1.LocalObjectReference{Name: "password"}}}
	dockerfile := "FROM " + s.base("one", nil, v1.Config{}) + "\nCOPY . /all\nRUN cat /all/word >/said; echo gone >/all/word\n"
	if got, log := s.mustBuild(spec, bytes.NewReader(tarOf(t, map[string]string{"Dockerfile": dockerfile}))); got.files["said"] != word {
		t.Fatalf("build did not read the secret: %v\n%s", got.files, log)
	}
	err := filepath.WalkDir(s.cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Base(path) != "word" {
			return err
		}
		content, err := os.ReadFile(path)
		// Skip /all/, because the image itself contains the copied source.
		if strings.Contains(string(content), word) && !strings.Contains(path, "/all/") {
			t.Errorf("%s contains the secret", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
