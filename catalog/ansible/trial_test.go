package ansible

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestResultsOfTests(t *testing.T) {
	for name, tt := range map[string]struct {
		code       int32
		annotation string
		want       string // "" if the trial succeeds
	}{
		"exit code 0":      {0, "", ""},
		"saved success":    {0, `{"fail": false, "msg": ""}`, ""},
		"saved failure":    {0, `{"fail": true, "msg": "no page"}`, "no page"},
		"failed playbook":  {2, "", "exit code 2"},
		"failed afterward": {2, `{"fail": false}`, "exit code 2"},
		"no playbook":      {notImplemented, "", "no playbook"},
		"invalid result":   {0, "yes", "decode test result"},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{resultAnnotation: tt.annotation}}}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: tt.code}}}}
		err := resultOf(pod)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if failed := err != nil && tt.annotation != "yes"; errors.Is(err, ErrTestFailed) != failed {
			t.Errorf("%s: %v is ErrTestFailed: %t", name, err, !failed)
		}
	}
}
