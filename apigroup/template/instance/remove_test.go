package instance

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	templatev1 "github.com/openshift/api/template/v1"
	templatefake "github.com/openshift/client-go/template/clientset/versioned/fake"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
)

// kinds maps Kubernetes kinds to their resources.
type kinds struct{ meta.RESTMapper }

func (kinds) Reset() {}

var review = schema.GroupVersionKind{Group: "authorization.k8s.io", Version: "v1", Kind: "LocalSubjectAccessReview"}

// at returns a reconciler for a server that contains the given objects. The server does not support
// reading access reviews.
func at(instance *templatev1.TemplateInstance, objects ...runtime.Object) *reconciler {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{review, batchv1.SchemeGroupVersion.WithKind("Job"), corev1.SchemeGroupVersion.WithKind("Secret")} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	server := dynamicfake.NewSimpleDynamicClient(scheme.Scheme, objects...)
	server.PrependReactor("get", "localsubjectaccessreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewMethodNotSupported(schema.GroupResource{Group: review.Group, Resource: "localsubjectaccessreviews"}, "get")
	})
	return &reconciler{client: templatefake.NewSimpleClientset(instance), objects: server, mapper: kinds{mapper}}
}

// newInstance returns an instance that has created or recorded the given objects, and has been
// waiting since the given time.
func newInstance(since time.Time, of ...corev1.ObjectReference) *templatev1.TemplateInstance {
	instance := &templatev1.TemplateInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "first", UID: "1", Finalizers: []string{templatev1.TemplateInstanceFinalizer},
	}}
	for _, ref := range of {
		ref.Namespace = instance.Namespace
		instance.Status.Objects = append(instance.Status.Objects, templatev1.TemplateInstanceObject{Ref: ref})
	}
	instance.Status.Conditions = []templatev1.TemplateInstanceCondition{{
		Type: templatev1.TemplateInstanceReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(since),
	}}
	return instance
}

func TestUnstoredObjectsAreIgnored(t *testing.T) {
	instance := newInstance(time.Now(), corev1.ObjectReference{APIVersion: "authorization.k8s.io/v1", Kind: review.Kind, Name: "a"})
	l := at(instance)
	if err := l.await(t.Context(), instance); err != nil || !is(instance, templatev1.TemplateInstanceReady) {
		t.Errorf("wait: %v, %+v", err, instance.Status.Conditions)
	}
	if err := l.remove(t.Context(), instance); err != nil || len(instance.Finalizers) > 0 {
		t.Errorf("remove: %v, and finalizers are %v", err, instance.Finalizers)
	}
}

// A user can delete a TemplateInstance without a request from the platform to the broker, so the
// controller must delete the broker's record.
func TestRemoveDeletesRecordOfBroker(t *testing.T) {
	instance := newInstance(time.Now())
	l := at(instance)
	records := l.client.TemplateV1().BrokerTemplateInstances()
	for name, at := range map[string]corev1.ObjectReference{
		"own": {Namespace: "shop", Name: "first"}, "forged": {Namespace: "victim", Name: "first"}, "unrelated": {Namespace: "shop", Name: "first"},
	} {
		record := &templatev1.BrokerTemplateInstance{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("of " + name)}}
		record.Spec.TemplateInstance = at
		if _, err := records.Create(t.Context(), record, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		if name != "unrelated" {
			instance.OwnerReferences = append(instance.OwnerReferences, metav1.OwnerReference{Kind: "BrokerTemplateInstance", Name: name, UID: record.UID})
		}
	}
	if err := l.remove(t.Context(), instance); err != nil || len(instance.Finalizers) > 0 {
		t.Errorf("remove: %v, and finalizers are %v", err, instance.Finalizers)
	}
	list, err := records.List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 2 || slices.ContainsFunc(list.Items, func(r templatev1.BrokerTemplateInstance) bool { return r.Name == "own" }) {
		t.Errorf("the remaining records are %+v, %v", list, err)
	}
}

func TestRemoveKeepsObjectsOfOthers(t *testing.T) {
	secret := func(uid types.UID, owner string) *unstructured.Unstructured {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetUID(uid)
		object.SetLabels(map[string]string{templatev1.TemplateInstanceOwner: owner})
		return object
	}
	for name, tt := range map[string]struct {
		object *unstructured.Unstructured
		want   bool
	}{
		"created for the instance": {secret("2", "1"), true},
		"created earlier":          {secret("2", ""), false},
		"another's":                {secret("2", "3"), false},
		"without identity":         {secret("", "1"), false},
	} {
		if got := owns("1", tt.object); got != tt.want {
			t.Errorf("%s: the object belongs to the instance: %t", name, got)
		}
	}
}

func TestAwaitFailsAfterTimeout(t *testing.T) {
	job := &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", UID: "2", Annotations: map[string]string{waitForReady: "true"}},
	}
	for since, fails := range map[time.Duration]bool{59 * time.Minute: false, 61 * time.Minute: true} {
		instance := newInstance(time.Now().Add(-since), corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Name: "a", UID: "2"})
		err := at(instance, job).await(t.Context(), instance)
		var final *failure
		if errors.As(err, &final) != fails || err == nil || fails && !strings.Contains(err.Error(), "timeout") {
			t.Errorf("after %s: %v", since, err)
		}
	}
}
