package node

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// diskEvent returns the OutOfDisk event that corresponds to a DiskPressure event, because
// Kubernetes has removed the OutOfDisk condition. It returns "" for other events.
//
// Source: OpenShift 3.11 Cluster Administration, 2.1.
func diskEvent(reason string) string {
	switch reason {
	case "NodeHasNoDiskPressure":
		return "NodeHasSufficientDisk"
	case "NodeHasDiskPressure":
		return "NodeOutOfDisk"
	}
	return ""
}

// nodeEvents is the kubelet's event recorder. It adds OutOfDisk events (see diskEvent).
type nodeEvents struct{ record.EventRecorderLogger }

// newNodeEvents returns a recorder that sends events to the API server, within the kubelet's rate
// limits, until ctx is done.
func newNodeEvents(ctx context.Context, name string, connection *rest.Config, config kubeletconfig.KubeletConfiguration) (nodeEvents, error) {
	limited := rest.CopyConfig(connection)
	limited.QPS, limited.Burst = float32(config.EventRecordQPS), int(config.EventBurst)
	if config.EventRecordQPS == 0 {
		limited.QPS = -1 // disables the limit
	}
	client, err := kubernetes.NewForConfig(limited)
	if err != nil {
		return nodeEvents{}, err
	}
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartStructuredLogging(3)
	broadcaster.StartRecordingToSink(&coreclient.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return nodeEvents{broadcaster.NewRecorder(legacyscheme.Scheme, corev1.EventSource{Component: "kubelet", Host: name})}, nil
}

// Eventf records an event. If DiskPressure changes, it also records an OutOfDisk event with the
// same text.
func (e nodeEvents) Eventf(object runtime.Object, kind, reason, format string, args ...any) {
	e.EventRecorderLogger.Eventf(object, kind, reason, format, args...)
	other := diskEvent(reason)
	if other == "" {
		return
	}
	replaced := make([]any, len(args))
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			arg = strings.ReplaceAll(text, reason, other)
		}
		replaced[i] = arg
	}
	e.EventRecorderLogger.Eventf(object, kind, other, format, replaced...)
}

// WithLogger returns a recorder that uses the given logger.
func (e nodeEvents) WithLogger(logger klog.Logger) record.EventRecorderLogger {
	return nodeEvents{e.EventRecorderLogger.WithLogger(logger)}
}
