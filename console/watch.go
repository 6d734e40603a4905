package console

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// settings returns the last valid settings.
func (s *server) settings() *settings { return s.current.Load() }

// follow applies the ConfigMap's settings whenever they change, until ctx is done. It returns after
// the settings have been read. If new settings are invalid, the previous settings remain in effect.
// Without the ConfigMap, the defaults apply.
func (s *server) follow(ctx context.Context, client kubernetes.Interface) error {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(settingsNamespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("metadata.name", settingsName).String()
		}))
	apply := func(object any) {
		if configMap, ok := object.(*corev1.ConfigMap); ok {
			s.apply(configMap.Data[settingsKey])
		}
	}
	informer := factory.Core().V1().ConfigMaps().Informer()
	handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: apply, UpdateFunc: func(_, object any) { apply(object) }, DeleteFunc: func(any) { s.apply("") },
	})
	if err != nil {
		return fmt.Errorf("watch web console settings: %w", err)
	}
	go informer.RunWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), handler.HasSynced) {
		return fmt.Errorf("watch web console settings: %w", ctx.Err())
	}
	return nil
}

// apply parses settings from text. If they are valid, they become the current settings.
func (s *server) apply(text string) {
	read, err := parseSettings(text)
	if err != nil {
		s.Report(fmt.Errorf("read %s of ConfigMap %s/%s: %w; the previous settings apply until you correct it", settingsKey, settingsNamespace, settingsName, err))
		return
	}
	s.current.Store(read)
}
