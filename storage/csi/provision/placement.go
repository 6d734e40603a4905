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

// planTopology sets the topology requirement.
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
		Claim: plan.claim.Name, Spread: !p.NoSpread && !hasDelayedBinding(plan.class), UID: string(plan.claim.UID),
	})
	plan.request.AccessibilityRequirements = requirement
	return err
}

// servesClaim reports whether this instance provisions volumes for the claim. If one instance
// serves all nodes, it always returns true.
func (p *provisioner) servesClaim(claim *corev1.PersistentVolumeClaim) bool {
	return p.Node == "" || selectedNode(claim) == p.Node
}

// servesVolume reports whether this instance deletes the volume.
func (p *provisioner) servesVolume(pv *corev1.PersistentVolume) (bool, error) {
	if p.Node == "" {
		return true, nil
	}
	node, err := p.nodes.Get(p.Node)
	if err != nil {
		return false, fmt.Errorf("read Node %q: %w", p.Node, err)
	}
	return volume.CheckNodeAffinity(pv, node.Labels) == nil, nil
}

// claimForNode selects this node for a claim with immediate binding, unless another node is faster:
// the first node that writes the annotation wins. The nodes start after different delays. A node
// without enough capacity does not write the annotation.
func (p *provisioner) claimForNode(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	if remaining := p.startDelay(claim) - time.Since(claim.CreationTimestamp.Time); remaining > 0 {
		return controller.RequeueAfter(remaining)
	}
	candidate := claim.DeepCopy()
	candidate.Annotations[nodeAnnotation] = p.Node
	plan, err := p.plan(ctx, candidate, class)
	if err != nil {
		// Do not claim the volume: either the topology excludes this node, or the selected node
		// will report the error.
		return nil
	}
	fits, err := p.hasCapacity(ctx, plan)
	if err != nil {
		return err
	}
	if !fits {
		return controller.RequeueAfter(time.Minute)
	}
	_, err = p.patchClaim(ctx, claim, object{"resourceVersion": claim.ResourceVersion, "annotations": object{nodeAnnotation: p.Node}})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return controller.RequeueAfter(time.Second)
	}
	return err
}

// startDelay returns this node's delay for a claim. It distributes the nodes over one second, in a
// different order for each claim.
func (p *provisioner) startDelay(claim *corev1.PersistentVolumeClaim) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(claim.UID) + p.Node))
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// hasCapacity queries the driver to determine whether the volume fits on this node. It returns true
// if the driver does not support GET_CAPACITY.
func (p *provisioner) hasCapacity(ctx context.Context, plan *plan) (bool, error) {
	if !p.Description.Can(csi.ControllerServiceCapability_RPC_GET_CAPACITY) {
		return true, nil
	}
	request := &csi.GetCapacityRequest{VolumeCapabilities: plan.request.GetVolumeCapabilities(), Parameters: plan.request.GetParameters()}
	if requisite := plan.request.GetAccessibilityRequirements().GetRequisite(); len(requisite) > 0 {
		request.AccessibleTopology = requisite[0]
	}
	resp, err := p.Driver.Controller().GetCapacity(ctx, request)
	if err != nil {
		return false, err
	}
	required := plan.request.GetCapacityRange().GetRequiredBytes()
	maxSize := resp.GetAvailableCapacity()
	if limit := resp.GetMaximumVolumeSize(); limit != nil {
		maxSize = min(maxSize, limit.GetValue())
	}
	return required <= maxSize, nil
}
