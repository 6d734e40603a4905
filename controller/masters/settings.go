package masters

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
)

// settingsName is the name of the ConfigMap in kube-system that maps each master's node to the
// hashes of its settings.
const settingsName = "slipway-masters"

// settingsInterval is the interval between comparisons with other masters.
const settingsInterval = 15 * time.Second

// Settings is the component that compares the settings of all masters. The host's status shows the
// differences, because masters with different settings respond differently to the same request.
type Settings struct {
	Client kubernetes.Interface
	// Node is the name of this master's node.
	Node string
	// Values maps setting keys to hashes of this master's settings.
	Values map[string]string
	// Differences returns the keys whose values differ.
	Differences func(a, b map[string]string) []string

	note  func(string)
	equal atomic.Bool // the last comparison found no difference
}

// Differ reports whether the masters' settings differ, or have not been compared yet.
func (s *Settings) Differ() bool { return !s.equal.Load() }

// Name returns the component's name.
func (*Settings) Name() string { return "shared-settings" }

// Notes sets the function that the component calls with the differences.
func (s *Settings) Notes(note func(string)) { s.note = note }

// Run compares settings until ctx is done.
func (s *Settings) Run(ctx context.Context, ready func()) error {
	ready()
	last := ""
	ticker := time.NewTicker(settingsInterval)
	defer ticker.Stop()
	for {
		text, err := s.compare(ctx)
		switch {
		case err != nil && ctx.Err() == nil:
			slog.Warn("cannot compare the masters' settings", "error", err)
		case err == nil:
			s.equal.Store(text == "")
		}
		if err == nil && text != last {
			last = text
			s.note(text)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// compare publishes this master's settings. It returns a description of how the settings differ
// from other masters' settings.
func (s *Settings) compare(ctx context.Context) (string, error) {
	data, err := s.publish(ctx)
	if err != nil {
		return "", err
	}
	var texts []string
	for _, node := range slices.Sorted(maps.Keys(data)) {
		var others map[string]string
		if err := json.Unmarshal([]byte(data[node]), &others); err != nil {
			continue // a master with another version wrote the value
		}
		if keys := s.Differences(s.Values, others); len(keys) > 0 {
			texts = append(texts, fmt.Sprintf("master-config.yaml differs from the file of master %s in %s; make the files equal, and restart both masters", node, strings.Join(keys, ", ")))
		}
	}
	return strings.Join(texts, "\n"), nil
}

// publish stores this master's settings and returns the settings of all masters.
func (s *Settings) publish(ctx context.Context) (map[string]string, error) {
	own, err := json.Marshal(s.Values)
	if err != nil {
		return nil, fmt.Errorf("encode settings: %w", err)
	}
	maps := s.Client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	var data map[string]string
	err = retry.OnError(retry.DefaultBackoff, isConflict, func() error {
		object, err := maps.Get(ctx, settingsName, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: settingsName}}
			object.Data = map[string]string{s.Node: string(own)}
			data = object.Data
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
			return err
		}
		if err != nil {
			return err
		}
		data = object.Data
		if data[s.Node] == string(own) {
			return nil
		}
		if object.Data == nil {
			object.Data = map[string]string{}
		}
		object.Data[s.Node] = string(own)
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("publish settings: %w", err)
	}
	return data, nil
}

// forget removes the settings of a removed master.
func forget(ctx context.Context, client kubernetes.Interface, node string) error {
	maps := client.CoreV1().ConfigMaps(metav1.NamespaceSystem)
	err := retry.OnError(retry.DefaultBackoff, isConflict, func() error {
		object, err := maps.Get(ctx, settingsName, metav1.GetOptions{})
		if err != nil || object.Data[node] == "" {
			return err
		}
		delete(object.Data, node)
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove settings of master %q: %w", node, err)
	}
	return nil
}

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }
