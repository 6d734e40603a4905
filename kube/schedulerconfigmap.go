package kube

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/kube/scheduler"
)

// policyKey is the ConfigMap key that contains the policy, as with OpenShift 3.11's
// `--policy-configmap`.
const policyKey = "policy.cfg"

// SchedulerConfigMap is a ConfigMap that contains the scheduler's policy. While the ConfigMap does
// not exist, Kubernetes' default rules apply.
type SchedulerConfigMap struct {
	Client kubernetes.Interface
	// Namespace and Name identify the ConfigMap.
	Namespace, Name string
	// Decode decodes the value of the policy.cfg key. name identifies the object in errors.
	Decode func(name string, data []byte) (scheduler.Settings, error)
}

// String returns the object's kind, namespace and name.
func (m *SchedulerConfigMap) String() string {
	return fmt.Sprintf("ConfigMap %s/%s", m.Namespace, m.Name)
}

// Notes sets the function that the scheduler calls with the reason why the ConfigMap is not
// applied.
func (s *Scheduler) Notes(note func(string)) { s.note = note }

// followConfigMap applies the ConfigMap until ctx is done. It closes synced when the initial state
// has been applied, and then waits for started before it reports anything.
func (s *Scheduler) followConfigMap(ctx context.Context, synced chan<- struct{}, started <-chan struct{}) {
	m := s.ConfigMap
	watch := cache.NewFilteredListWatchFromClient(m.Client.CoreV1().RESTClient(), "configmaps", m.Namespace, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, m.Name).String()
	})
	changed := make(chan struct{}, 1)
	notify := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: watch, ObjectType: &corev1.ConfigMap{}, ResyncPeriod: policyRetryInterval,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() }, UpdateFunc: func(any, any) { notify() }, DeleteFunc: func(any) { notify() },
		},
	})
	done := make(chan struct{})
	go func() {
		defer close(done)
		informer.RunWithContext(ctx)
	}()
	defer func() { <-done }()
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return
	}
	text, last := s.applyConfigMap(store), ""
	close(synced)
	select {
	case <-ctx.Done():
		return
	case <-started:
	}
	for {
		if text != last && text != "" {
			slog.Warn("the scheduler policy is not in effect", "error", text)
		}
		if text != last {
			s.note(text)
		}
		last = text
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
		text = s.applyConfigMap(store)
	}
}

// policyRetryInterval is the interval between attempts to apply a ConfigMap. An attempt fails if
// the disk is full, for example.
const policyRetryInterval = time.Minute

// applyConfigMap applies the ConfigMap that a store contains. It returns the reason why the
// ConfigMap is not applied, or "" if it is applied.
func (s *Scheduler) applyConfigMap(store cache.Store) string {
	m := s.ConfigMap
	object, exists, err := store.GetByKey(m.Namespace + "/" + m.Name)
	if err != nil {
		return err.Error()
	}
	var settings scheduler.Settings
	problem := ""
	if exists {
		text, hasKey := object.(*corev1.ConfigMap).Data[policyKey]
		if !hasKey {
			return fmt.Sprintf("%s has no key %s: the previous rules remain in effect", m, policyKey)
		}
		if settings, err = m.Decode(m.String(), []byte(text)); err != nil {
			return fmt.Sprintf("%s is rejected, and the previous rules remain in effect: %v", m, err)
		}
	} else {
		problem = fmt.Sprintf("%s does not exist: the default rules of Kubernetes apply", m)
	}
	s.mu.Lock()
	former := s.mapped
	s.mapped = settings
	base := s.base
	s.mu.Unlock()
	if reflect.DeepEqual(former, settings) {
		return problem
	}
	apply, err := s.Prepare(base)
	if err != nil {
		s.mu.Lock()
		s.mapped = former
		s.mu.Unlock()
		return fmt.Sprintf("%s is rejected, and the previous rules remain in effect: %v", m, err)
	}
	apply()
	return problem
}
