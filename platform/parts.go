package platform

import "fmt"

// The programs of a host. The supervisor starts the others in this order and stops them in the
// reverse one.
const (
	supervisorName   = "slipway"
	controlPlaneName = "control-plane"
	containerdName   = "containerd"
	nodeName         = "node"
)

// row is one line of a process's table: a part, what it waits for, and how it is made from the
// configuration.
type row struct {
	name  string
	after []string
	make  func(*host) (Component, error)
}

// controlPlaneTable is what `slipway control-plane` runs.
func controlPlaneTable() []row {
	return []row{
		{"etcd", nil, (*host).etcd},
		{"apiserver", []string{"etcd"}, (*host).apiServer},
		{"controllers", []string{"apiserver"}, (*host).controllers},
		{"scheduler", []string{"apiserver"}, (*host).scheduler},
		{"flexvolume", nil, (*host).flexVolumes},
		{"flexvolume-recovery", []string{"apiserver", "flexvolume"}, (*host).flexVolumeRecovery},
		{"attach-detach", []string{"flexvolume-recovery"}, (*host).attachDetach},
		{"expander", []string{"apiserver", "flexvolume"}, (*host).expander},
		{"bootstrap", []string{"apiserver"}, (*host).bootstrap},
		{"allocator", []string{"apiserver"}, (*host).allocator},
		{"projects", []string{"apiserver"}, (*host).projects},
		{"service-account-secrets", []string{"apiserver"}, (*host).serviceAccountSecrets},
		{"service-certificates", []string{"apiserver"}, (*host).serviceCertificates},
		{"ingress", []string{"apiserver"}, (*host).ingress},
		{"registry", []string{"apiserver"}, (*host).registry},
		{"image-streams", []string{"apiserver"}, (*host).imageStreams},
		{"image-signatures", []string{"apiserver"}, (*host).imageSignatures},
		{"deployments", []string{"apiserver"}, (*host).deployments},
		{"ingress-addresses", []string{"apiserver"}, (*host).ingressAddresses},
		{"unidling", []string{"apiserver"}, (*host).unidling},
		{"template-instances", []string{"apiserver"}, (*host).templateInstances},
		{"builds", []string{"apiserver"}, (*host).builds},
		{"encryption", []string{"apiserver"}, (*host).rewriter},
		{"certificates", []string{"apiserver"}, (*host).certificates},
		{"configuration", []string{"apiserver"}, (*host).configuration}, // the last in this list: it follows what the others have said they can adjust
	}
}

// nodeTable is what `slipway node` runs. Its parts find the control plane over the network, as those
// of a host that is only a node do.
func nodeTable() []row {
	return []row{
		{"api", nil, (*host).api},
		{"images", nil, (*host).images},
		{"disk-guard", nil, (*host).diskGuard},
		{"flexvolume", nil, (*host).flexVolumes},
		{"flexvolume-cleanup", []string{"flexvolume"}, (*host).flexVolumeCleanup},
		{"image-service", nil, (*host).imageService},
		{"kubelet", []string{"api", "images", "image-service", "flexvolume-cleanup"}, (*host).kubelet},
		{"local-storage", []string{"kubelet"}, (*host).localStorage}, // nothing of the node waits for it
		{"network", []string{"api"}, (*host).network},
		{"dns", []string{"network"}, (*host).dns},
		{"router", []string{"network"}, (*host).router}, // nothing of the node waits for it
		{"idling", []string{"network"}, (*host).idling}, // nothing of the node waits for it
		{"proxy", []string{"network"}, (*host).proxy},   // not before the Node exists: upstream would look again only after a second
	}
}

// composition is every process with its parts, before anything runs.
func composition() []ProcessStatus {
	return []ProcessStatus{
		{Name: controlPlaneName, State: Stopped, Parts: partStatuses(controlPlaneTable())},
		{Name: containerdName, State: Stopped, Parts: partStatuses([]row{{name: containerdName}})},
		{Name: nodeName, State: Stopped, Parts: partStatuses(nodeTable())},
	}
}

func partStatuses(table []row) []PartStatus {
	var parts []PartStatus
	for _, row := range table {
		parts = append(parts, PartStatus{Name: row.name, After: row.after, State: Stopped})
	}
	return parts
}

// processNames lists the processes below the supervisor in the order of their start.
func processNames() []string {
	var names []string
	for _, process := range composition() {
		names = append(names, process.Name)
	}
	return names
}

// build makes the parts of a table for a host.
func (h *host) build(table []row) ([]Part, error) {
	var parts []Part
	for _, row := range table {
		component, err := row.make(h)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		parts = append(parts, Part{Component: component, After: row.after})
	}
	return parts, nil
}
