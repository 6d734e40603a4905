package node

import (
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// Shutdown specifies how long pods may take to terminate when the machine shuts down. The kubelet
// delays the shutdown through systemd-logind, and terminates the platform's pods last. Without this
// delay, systemd would kill the processes of all pods immediately.
type Shutdown struct {
	// Period is the total time for all pods. Critical is the part of Period that is reserved for
	// pods with the priority class system-cluster-critical or higher. If Period is 0, the shutdown
	// does not wait for pods.
	Period, Critical time.Duration
}

// fill sets the kubelet's configuration.
func (s Shutdown) fill(c *kubeletconfig.KubeletConfiguration) {
	if s.Period == 0 || !hasSystemBus() {
		return
	}
	c.ShutdownGracePeriod = metav1.Duration{Duration: s.Period}
	c.ShutdownGracePeriodCriticalPods = metav1.Duration{Duration: min(s.Critical, s.Period)}
}

// hasSystemBus reports whether the machine has a D-Bus system bus, through which the kubelet
// connects to systemd-logind.
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
