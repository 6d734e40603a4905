package controller

import (
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

func TestLiveSkipsMissingAndDeletedObjects(t *testing.T) {
	unknown, now := errors.New("no cache"), metav1.Now()
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		err  error
		live bool
		want error
	}{
		"exists":        {pod: &corev1.Pod{}, live: true},
		"being deleted": {pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}},
		"not found":     {err: apierrors.NewNotFound(corev1.Resource("pods"), "web")},
		"another error": {err: unknown, want: unknown},
	} {
		t.Run(name, func(t *testing.T) {
			pod, live, err := Live(tt.pod, tt.err)
			if pod != tt.pod || live != tt.live || !errors.Is(err, tt.want) {
				t.Errorf("got %v, %v, %v", pod, live, err)
			}
		})
	}
}

func TestWatchReferencesEnqueuesReferringObjects(t *testing.T) {
	pods := cache.NewSharedIndexInformer(nil, &corev1.Pod{}, 0, cache.Indexers{})
	accounts := cache.NewSharedIndexInformer(nil, &corev1.ServiceAccount{}, 0, cache.Indexers{})
	watch, err := WatchReferences(pods, "account", func(object any) []string {
		pod := object.(*corev1.Pod)
		return []string{pod.Namespace + "/" + pod.Spec.ServiceAccountName}
	}, accounts)
	if err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"shop", "blog"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: corev1.PodSpec{ServiceAccountName: "builder"}}
		if err := pods.GetIndexer().Add(pod); err != nil {
			t.Fatal(err)
		}
	}
	keys := func(name string) []Key {
		return watch.Keys(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	if got := keys("builder"); !slices.Equal(got, []Key{{Namespace: "shop", Name: "web"}}) || watch.Informer != accounts {
		t.Errorf("got %v", got)
	}
	if got := keys("deployer"); len(got) > 0 {
		t.Errorf("got %v for a service account that no pod uses", got)
	}
	if _, err := WatchReferences(pods, "account", func(any) []string { return nil }, accounts); err == nil {
		t.Error("a second index of the same name is accepted")
	}
}
