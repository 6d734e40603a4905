package status

import (
	"bytes"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// TestProjectsAreShown prints the project in each file in testdata. It compares the overview, the
// suggestions, the overview of all projects, and the graph with golden files.
func TestProjectsAreShown(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("find projects: %v, %d files", err, len(files))
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".yaml")
		t.Run(filepath.Base(name), func(t *testing.T) {
			client := objectstest.Client(objectstest.Load(t, file), [][2]string{
				{"v1", "Service"}, {"v1", "Pod"}, {"v1", "Secret"}, {"v1", "ReplicationController"}, {"apps/v1", "Deployment"}, {"apps/v1", "ReplicaSet"},
				{"apps/v1", "StatefulSet"}, {"apps/v1", "DaemonSet"}, {"apps.openshift.io/v1", "DeploymentConfig"}, {"build.openshift.io/v1", "BuildConfig"},
				{"build.openshift.io/v1", "Build"}, {"image.openshift.io/v1", "ImageStream"}, {"route.openshift.io/v1", "Route"}, {"autoscaling/v2", "HorizontalPodAutoscaler"},
			}...)
			state, err := Load(t.Context(), client, "shop")
			if err != nil {
				t.Fatal(err)
			}
			options := Options{Namespace: "shop", Title: "A shop", Server: "https://master:8443", Now: time.Date(2026, 1, 2, 0, 10, 0, 0, time.UTC)}
			suggested, outside := options, options
			suggested.Suggest, outside.Namespace = true, ""
			for _, text := range []struct {
				as      string
				write   func(io.Writer, *State, Options) error
				options Options
			}{{"", Write, options}, {".suggest", Write, suggested}, {".all", Write, outside}, {".dot", WriteDot, options}} {
				var out bytes.Buffer
				if err := text.write(&out, state, text.options); err != nil {
					t.Fatal(err)
				}
				objectstest.Golden(t, name+text.as+".golden", out.String())
			}
		})
	}
}

func TestTextOfObjectsDoesNotControlTerminal(t *testing.T) {
	config := buildv1.BuildConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	config.Spec.Strategy.DockerStrategy = &buildv1.DockerBuildStrategy{From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "base\x1b]0;title\a:1"}}
	var out bytes.Buffer
	if err := Write(&out, &State{BuildConfigs: []buildv1.BuildConfig{config}}, Options{Namespace: "shop"}); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Contains(text, "\x1b") || !strings.Contains(text, "title") {
		t.Errorf("printed %q", text)
	}
}
