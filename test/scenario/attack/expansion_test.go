package attack

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestSmallRequestCannotExhaustMemory(t *testing.T) {
	s := tenants(t)
	pid, pods := s.Status().PID("control-plane"), kit.CorePath(s.evil, "pods?")
	const head = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bomb"}, "spec": {"containers": [{}`
	for name, tt := range map[string]struct {
		body string
		kind func(error) bool
	}{
		"a million containers":                      {head + strings.Repeat(",{}", 1_000_000) + "]}}", apierrors.IsRequestEntityTooLargeError},
		"a million lines":                           {"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n" + strings.Repeat("  -\n", 700_000), apierrors.IsRequestEntityTooLargeError},
		"a million elements after a quotation mark": {"# \"\napiVersion: v1\nkind: Pod\nspec: {containers: [{}" + strings.Repeat(",{}", 1_000_000) + "]}", apierrors.IsRequestEntityTooLargeError},
		"a million elements after carriage returns": {"apiVersion: v1\rkind: Pod\rspec:\r  containers:\r" + strings.Repeat("  -\r", 700_000), apierrors.IsRequestEntityTooLargeError},
		"a long text, aliased": {"apiVersion: v1\nkind: Pod\na: &a " + strings.Repeat("x", 200_000) + "\nb: [" + strings.Repeat("*a,", 5_000) + strings.Repeat("1,", 100) + "]",
			apierrors.IsRequestEntityTooLargeError},
		"the maximum that is allowed": {head + strings.Repeat(",{}", 19_000) + "]}}", func(err error) bool { return err != nil }},
	} {
		growth := peakDuring(t, pid, func() {
			var requests sync.WaitGroup
			for range 4 {
				requests.Go(func() {
					if response, err := s.mallory.Try("POST", pods, tt.body); !tt.kind(err) {
						t.Errorf("%s: %v %.300s", name, err, response)
					}
				})
			}
			requests.Wait()
		})
		t.Logf("%s: the memory grows by %d MiB", name, growth)
		if growth > maxGrowth {
			t.Errorf("%s: the memory of the control plane grows by %d MiB", name, growth)
		}
	}
}

// In upstream Kubernetes, the cost of these requests grows with the square or the cube of their
// size.
func TestSmallRequestCannotOccupyProcessor(t *testing.T) {
	s := tenants(t)
	const fields = 150_000
	paths := `{"f:a": {}` + strings.Repeat(`, "f:b": {}`, fields) + "}"
	review := s.Anonymous().Rest.Post().AbsPath("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews").SetHeader("Content-Type", "application/json")
	err := review.Body([]byte(`{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {"nonResourceAttributes": {"path": "/", "verb": "get"}},
		"metadata": {"managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "authorization.k8s.io/v1", "fieldsType": "FieldsV1", "fieldsV1": ` + paths + `}]}}`)).Do(t.Context()).Error()
	if !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("an anonymous review with many field paths: %v", err)
	}
	config := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "bomb", ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "m", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(paths)}},
	}}}
	err = s.mallory.Rest.Post().AbsPath(kit.CorePath(s.evil, "configmaps")).SetHeader("Content-Type", "application/vnd.kubernetes.protobuf").
		Body(encoded(t, &config)).Do(t.Context()).Error()
	if !apierrors.IsRequestEntityTooLargeError(err) {
		t.Errorf("a config map in protobuf with many field paths: %v", err)
	}

	list := func(letter string) string {
		values := make([]string, 100)
		for i := range values {
			values[i] = fmt.Sprint(letter, i)
		}
		return "[" + strings.Join(values, ", ") + "]"
	}
	role := "metadata: {name: bomb}, rules: [{verbs: " + list("v") + ", apiGroups: " + list("g") + ", resources: " + list("r") + "}]}"
	s.mallory.MayNot("POST", kit.GroupPath("rbac.authorization.k8s.io", s.evil, "roles"), "{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, "+role, "combinations of verb")
	s.mallory.MayNot("POST", kit.GroupPath("authorization.openshift.io", s.evil, "roles"), "{apiVersion: authorization.openshift.io/v1, kind: Role, "+role, "combinations of verb")
}

// encoded returns an object as protobuf.
func encoded(t *testing.T, config *corev1.ConfigMap) []byte {
	t.Helper()
	config.APIVersion, config.Kind = "v1", "ConfigMap"
	var body bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(config, &body); err != nil {
		t.Fatal(err)
	}
	return body.Bytes()
}
