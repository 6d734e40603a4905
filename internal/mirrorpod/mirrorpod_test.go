package mirrorpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestOnlyNodeOfPodCreatesMirrorPods(t *testing.T) {
	mirrored := map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
	nodes := []string{user.NodesGroup}
	for name, tt := range map[string]struct {
		annotations map[string]string
		node        string
		requester   user.Info
		want        bool
	}{
		"node of the pod":         {mirrored, "one", &user.DefaultInfo{Name: "system:node:one", Groups: nodes}, true},
		"pod of the node":         {nil, "one", &user.DefaultInfo{Name: "system:node:one", Groups: nodes}, false},
		"another node":            {mirrored, "one", &user.DefaultInfo{Name: "system:node:two", Groups: nodes}, false},
		"pod without a node":      {mirrored, "", &user.DefaultInfo{Name: "system:node:", Groups: nodes}, false},
		"name without the group":  {mirrored, "one", &user.DefaultInfo{Name: "system:node:one"}, false},
		"tenant":                  {mirrored, "one", &user.DefaultInfo{Name: "alice", Groups: []string{user.AllAuthenticated}}, false},
		"request without a user":  {mirrored, "one", nil, false},
		"group without node name": {mirrored, "one", &user.DefaultInfo{Name: "one", Groups: nodes}, false},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: tt.annotations}, Spec: corev1.PodSpec{NodeName: tt.node}}
		if got := Is(pod, tt.requester); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
