package volumeplugin

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

func TestNodeConditionListsFailedDrivers(t *testing.T) {
	dir, keepDir := t.TempDir(), t.TempDir()
	install := func(content string) {
		t.Helper()
		path := filepath.Join(dir, "example.com~disk", "disk")
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+content+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
	install("echo no JSON")
	registry := &flexvolume.Registry{Dir: dir, KeepDir: keepDir}
	componenttest.Run(t, registry.Run)
	client := fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "host1"}})
	componenttest.Run(t, (&Report{Client: client, NodeName: "host1", Registry: registry, KeepDirs: []string{keepDir}}).Run)

	node := func(status corev1.ConditionStatus, text string) func() bool {
		return func() bool {
			node, err := client.CoreV1().Nodes().Get(t.Context(), "host1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range node.Status.Conditions {
				if c.Type == DriversCondition {
					return c.Status == status && strings.Contains(c.Message, text) && !c.LastTransitionTime.IsZero()
				}
			}
			return false
		}
	}
	event := func(reason, text string) func() bool {
		return func() bool {
			events, err := client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events.Items {
				if e.Reason == reason && e.InvolvedObject.UID == "host1" && strings.Contains(e.Message, text) {
					return true
				}
			}
			return false
		}
	}
	eventually.True(t, "the condition of the failure", node(corev1.ConditionFalse, "printed no JSON"))
	eventually.True(t, "the event of the failure", event(reasonFailed, "example.com/disk"))
	install(`case $1 in unmount) echo '{"status":"Failure","message":"it is busy"}';; *) echo '{"status":"Success"}';; esac`)
	eventually.True(t, "the condition of the new version", node(corev1.ConditionTrue, "all FlexVolume drivers"))
	eventually.True(t, "the event of the new version", event(reasonRecovery, "example.com/disk"))
	existing, err := client.CoreV1().Nodes().Get(t.Context(), "host1", metav1.GetOptions{})
	var drivers []ReportedDriver
	if err == nil {
		err = json.Unmarshal([]byte(existing.Annotations[DriversAnnotation]), &drivers)
	}
	if err != nil || len(drivers) != 1 || drivers[0].State != flexvolume.StateReady || drivers[0].Capabilities == "" {
		t.Errorf("the annotation contains %+v, %v", drivers, err)
	}

	driver, err := registry.Ready(t.Context(), "example.com/disk")
	if err != nil {
		t.Fatal(err)
	}
	if driver.Unmount(t.Context(), "/pods/1/volumes/x/data") == nil {
		t.Fatal("the unmount succeeds")
	}
	// Change a driver to trigger a report, so that the test does not wait for the interval.
	install("echo '{\"status\":\"Success\"}'")
	eventually.True(t, "condition of the volume that is not released", node(corev1.ConditionFalse, "it is busy"))
	eventually.True(t, "the event of the volume that is not released", event(reasonRelease, "unmount of /pods/1/volumes/x/data"))
}
