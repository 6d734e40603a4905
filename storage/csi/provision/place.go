package provision

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/component-helpers/storage/volume"

	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/storage/csi/topology"
)

// planTopology says where the volume may be.
func (p *provisioner) planTopology(_ context.Context, plan *plan) error {
	if !p.topology {
		return nil
	}
	nodes, err := p.Nodes()
	if err != nil {
		return err
	}
	requirement, err := topology.Requirement(topology.Input{
		Nodes: nodes, Selected: selectedNode(plan.claim), Strict: p.Strict || p.Node != "", Allowed: plan.class.AllowedTopologies,
		Claim: plan.claim.Name, Spread: !p.NoSpread && !delayed(plan.class), UID: string(plan.claim.UID),
	})
	plan.request.AccessibilityRequirements = requirement
	return err
}

// here tells whether volumes for the claim are made by this instance: always, unless each instance serves its node.
func (p *provisioner) here(claim *corev1.PersistentVolumeClaim) bool {
	return p.Node == "" || selectedNode(claim) == p.Node
}

// hereToo tells whether a volume is to be deleted by this instance.
func (p *provisioner) hereToo(pv *corev1.PersistentVolume) (bool, error) {
	if p.Node == "" {
		return true, nil
	}
	node, err := p.nodes.Get(p.Node)
	if err != nil {
		return false, fmt.Errorf("read Node %q: %w", p.Node, err)
	}
	return volume.CheckNodeAffinity(pv, node.Labels) == nil, nil
}

// compete takes a claim with immediate binding for this node, if no other node is quicker: the first to write the selected node wins. Nodes begin at
// different times, and only those with room.
func (p *provisioner) compete(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	if left := p.turn(claim) - time.Since(claim.CreationTimestamp.Time); left > 0 {
		return controller.After(left)
	}
	candidate := claim.DeepCopy()
	candidate.Annotations[nodeAnnotation] = p.Node
	plan, err := p.plan(ctx, candidate, class)
	if err != nil {
		return nil // not for this node: the topology does not allow it, or all nodes will say the same once one has taken it
	}
	room, err := p.room(ctx, plan)
	if err != nil {
		return err
	}
	if !room {
		return controller.After(time.Minute)
	}
	_, err = p.patchClaim(ctx, claim, object{"resourceVersion": claim.ResourceVersion, "annotations": object{nodeAnnotation: p.Node}})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return controller.After(time.Second)
	}
	return err
}

// turn spreads the nodes over a second, for each claim in another order.
func (p *provisioner) turn(claim *corev1.PersistentVolumeClaim) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(claim.UID) + p.Node))
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// room asks the driver whether the volume fits on this node. A driver that cannot tell is asked to make it.
func (p *provisioner) room(ctx context.Context, plan *plan) (bool, error) {
	if !p.Description.Can(csi.ControllerServiceCapability_RPC_GET_CAPACITY) {
		return true, nil
	}
	request := &csi.GetCapacityRequest{VolumeCapabilities: plan.request.GetVolumeCapabilities(), Parameters: plan.request.GetParameters()}
	if requisite := plan.request.GetAccessibilityRequirements().GetRequisite(); len(requisite) > 0 {
		request.AccessibleTopology = requisite[0]
	}
	answer, err := p.Driver.Controller().GetCapacity(ctx, request)
	if err != nil {
		return false, err
	}
	wanted := plan.request.GetCapacityRange().GetRequiredBytes()
	largest := answer.GetAvailableCapacity()
	if limit := answer.GetMaximumVolumeSize(); limit != nil {
		largest = min(largest, limit.GetValue())
	}
	return wanted <= largest, nil
}
