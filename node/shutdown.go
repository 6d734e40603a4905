package node

import (
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// Shutdown is the time that pods have to end when the machine shuts down. The kubelet delays the
// shutdown through systemd-logind, and ends pods of the platform last. Without it, systemd kills
// the processes of all pods immediately.
type Shutdown struct {
	// Period is the time for all pods, and Critical the part of it that only pods with the priority
	// system-cluster-critical or higher have. With Period 0, the shutdown does not wait for pods.
	Period, Critical time.Duration
}

// fill sets the configuration of the kubelet.
func (s Shutdown) fill(c *kubeletconfig.KubeletConfiguration) {
	if s.Period == 0 || !hasSystemBus() {
		return
	}
	c.ShutdownGracePeriod = metav1.Duration{Duration: s.Period}
	c.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: min(s.Critical, s.Period)}
}

// hasSystemBus reports whether the machine has D-Bus's system bus, over which the kubelet connects
// to systemd-logind.
func hasSystemBus() bool {
	address := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	if address == "" {
		address = "unix:path=/run/dbus/system_bus_socket"
	}
	path, isPath := strings.CutPrefix(address, "unix:path=")
	if !isPath {
		return true
	}
	_, err := os.Stat(path)
	return err == nil
}
