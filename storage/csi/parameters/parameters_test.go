package parameters

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestReservedParametersAreNotPassedToDriver(t *testing.T) {
	got, err := ForDriver(map[string]string{
		"type": "ssd", "csi.storage.k8s.io/fstype": "xfs", "fstype": "ext4",
		"csi.storage.k8s.io/provisioner-secret-name": "a", "csi.storage.k8s.io/node-expand-secret-namespace": "b",
		"csiProvisionerSecretName": "c", "csiProvisionerSecretNamespace": "d", "csiNodePublishSecretName": "e",
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"type": "ssd"}, got); diff != "" {
		t.Error(diff)
	}
	if _, err := ForDriver(map[string]string{"csi.storage.k8s.io/provisioner-secret": "a"}); err == nil {
		t.Error("a misspelt reserved parameter is passed on")
	}
}

func TestFileSystems(t *testing.T) {
	tests := []struct {
		parameters map[string]string
		want       string
		wantErr    bool
	}{
		{nil, "ext4", false},
		{map[string]string{"csi.storage.k8s.io/fstype": "xfs"}, "xfs", false},
		{map[string]string{"fstype": "btrfs"}, "btrfs", false},
		{map[string]string{"fstype": "xfs", "csi.storage.k8s.io/fstype": "xfs"}, "", true},
	}
	for _, tt := range tests {
		if got, err := FSType(tt.parameters, "ext4"); got != tt.want || (err != nil) != tt.wantErr {
			t.Errorf("%v: %q, %v", tt.parameters, got, err)
		}
	}
}

func TestSecretTemplates(t *testing.T) {
	const name, namespace = "csi.storage.k8s.io/node-stage-secret-name", "csi.storage.k8s.io/node-stage-secret-namespace"
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "data", Annotations: map[string]string{"key": "chosen"}}}
	tests := []struct {
		title      string
		parameters map[string]string
		want       *corev1.SecretReference
		wantErr    bool
	}{
		{"none", map[string]string{"type": "ssd"}, nil, false},
		{"plain", map[string]string{name: "s", namespace: "ns"}, &corev1.SecretReference{Name: "s", Namespace: "ns"}, false},
		{"claim", map[string]string{name: "${pvc.name}-${pv.name}", namespace: "${pvc.namespace}"}, &corev1.SecretReference{Name: "data-pvc-1", Namespace: "team"}, false},
		{"annotation", map[string]string{name: "${pvc.annotations['key']}", namespace: "ns"}, &corev1.SecretReference{Name: "chosen", Namespace: "ns"}, false},
		{"deprecated keys", map[string]string{"csiNodeStageSecretName": "s", "csiNodeStageSecretNamespace": "ns"}, &corev1.SecretReference{Name: "s", Namespace: "ns"}, false},
		{"both", map[string]string{name: "s", namespace: "ns", "csiNodeStageSecretName": "s", "csiNodeStageSecretNamespace": "ns"}, nil, true},
		{"half", map[string]string{name: "s"}, nil, true},
		{"namespace from annotation", map[string]string{name: "s", namespace: "${pvc.annotations['key']}"}, nil, true},
		{"missing annotation", map[string]string{name: "${pvc.annotations['other']}", namespace: "ns"}, nil, true},
		{"invalid name", map[string]string{name: "../s", namespace: "ns"}, nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.title, func(t *testing.T) {
			got, err := Secret(tt.parameters, NodeStage, ClaimValues("pvc-1", claim))
			if (err != nil) != tt.wantErr {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFetchReturnsAllKeys(t *testing.T) {
	client := fake.NewClientset(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s"},
		Data:       map[string][]byte{"user": []byte("alice"), "binary": {0xff, 0x00}},
	})
	got, err := Fetch(t.Context(), client, &corev1.SecretReference{Namespace: "ns", Name: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"user": "alice", "binary": "\xff\x00"}, got); diff != "" {
		t.Error(diff)
	}
	if got, err := Fetch(t.Context(), client, nil); got != nil || err != nil {
		t.Errorf("no reference gives %v, %v", got, err)
	}
}
