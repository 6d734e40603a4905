package policy

import (
	"context"
	"strconv"

	networkv1 "github.com/openshift/api/network/v1"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/multicast"
)

// multicastEnabled is the value of the annotation that enables multicast.
const multicastEnabled = "true"

// multicastGroups returns the multicast group of each project that has multicast enabled.
//
// In multitenant mode, the projects that share a network ID form a group, and multicast is enabled
// if it is enabled in all of them. The projects with ID 0 form a separate group, which exchanges no
// multicast packets with other projects. In network policy mode, each project is a separate group.
func (o *objects) multicastGroups(plugin string) map[string]string {
	groups, disabled := map[string]string{}, map[string]bool{}
	if plugin == networkplugin.Subnet {
		return groups
	}
	for _, object := range o.netNamespaces.GetStore().List() {
		project := object.(*networkv1.NetNamespace)
		if !o.isCurrent(project) {
			continue
		}
		group := project.Name
		if plugin == networkplugin.Multitenant {
			group = strconv.FormatUint(uint64(project.NetID), 10)
		}
		groups[project.Name] = group
		if project.Annotations[networkv1.MulticastEnabledAnnotation] != multicastEnabled {
			disabled[group] = true
		}
	}
	for project, group := range groups {
		if disabled[group] {
			delete(groups, project)
		}
	}
	return groups
}

// deliver makes the kernel deliver multicast packets within groups.
func (s *enforcement) deliver(ctx context.Context) error {
	groups := s.objects.multicastGroups(s.plugin)
	if len(groups) == 0 {
		return s.delivery.Apply(ctx, nil)
	}
	local, err := cni.ListPods(s.LeaseDir)
	if err != nil {
		return err
	}
	return s.delivery.Apply(ctx, s.objects.multicastPods(groups, s.NodeName, local))
}

// multicastPods returns the multicast groups with their pods.
func (o *objects) multicastPods(groups map[string]string, node string, local []cni.Pod) (list []multicast.Group) {
	pods, devices := map[string]*multicast.Group{}, cni.ListDevices()
	for _, pod := range local {
		group, exists := groups[pod.Namespace]
		if !exists || !devices.Have(pod) {
			continue
		}
		if pods[group] == nil {
			pods[group] = &multicast.Group{}
		}
		pods[group].Local = append(pods[group].Local, multicast.Pod{Device: pod.Device, Address: pod.Address, SecondAddress: pod.SecondAddress})
	}
	for _, object := range o.pods.GetStore().List() {
		pod := object.(*cachedPod)
		if group := pods[groups[pod.Namespace]]; group != nil && pod.isRemote(node) {
			group.Remote = append(group.Remote, pod.addresses()...)
		}
	}
	for _, group := range pods {
		list = append(list, *group)
	}
	return list
}
