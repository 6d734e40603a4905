package cni

import (
	"encoding/json"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
)

// policyTimeout is the maximum time to wait for the component that enforces network policies.
// policyPoll is the interval between attempts to connect to it.
const (
	policyTimeout = 20 * time.Second
	policyPoll    = 50 * time.Millisecond
)

// podName identifies the pod of a lease. It is empty if the container does not belong to a pod.
type podName struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// Pod is a pod with an address on this host. Its name is empty if an earlier version of the plugin
// created the lease.
type Pod struct {
	podName
	Address netip.Addr `json:"address"`
	// SecondAddress is the pod's IPv6 address, if it has one.
	SecondAddress netip.Addr `json:"secondAddress,omitzero"`
	Device        string     `json:"-"` // host end of the pod's veth
}

// Addresses returns the pod's addresses.
func (p Pod) Addresses() []netip.Addr {
	if p.SecondAddress.IsValid() {
		return []netip.Addr{p.Address, p.SecondAddress}
	}
	return []netip.Addr{p.Address}
}

// HasDevice reports whether the pod's device exists.
func (p Pod) HasDevice() bool { return p.Device != "" && deviceExists(p.Device) }

// PolicyResponse is the JSON response to a Pod that a client sends to Config.PolicySocket.
type PolicyResponse struct {
	Error string `json:"error,omitempty"` // empty if the pod's policies are enforced
}

// ListPods returns the pods that have an address. dir is the network's lease directory.
func ListPods(dir string) ([]Pod, error) {
	leases, err := leases{dir: dir}.list()
	var pods []Pod
	for _, l := range leases {
		pods = append(pods, Pod{l.Pod, l.Address, l.SecondAddress, l.Device})
	}
	return pods, err
}

// LeaseDir returns a network's lease directory.
func LeaseDir(stateDir, network string) string { return filepath.Join(stateDir, network) }

// podNameOf returns the name of the pod from CNI_ARGS, which the container runtime sets.
func podNameOf(args *skel.CmdArgs) (podName, error) {
	var pod struct {
		types.CommonArgs
		K8S_POD_NAMESPACE, K8S_POD_NAME, K8S_POD_UID types.UnmarshallableString //nolint:revive // keys of CNI_ARGS
	}
	pod.IgnoreUnknown = true
	if err := types.LoadArgs(args.Args, &pod); err != nil {
		return podName{}, types.NewError(types.ErrInvalidEnvironmentVariables, "parse CNI_ARGS: "+err.Error(), "")
	}
	return podName{string(pod.K8S_POD_NAMESPACE), string(pod.K8S_POD_NAME), string(pod.K8S_POD_UID)}, nil
}

// awaitPolicy waits until the network policies of a new pod are enforced. The container runtime
// starts the pod's processes only after that.
func (c Config) awaitPolicy(l lease) error {
	if c.PolicySocket == "" {
		return nil
	}
	deadline := time.Now().Add(policyTimeout)
	conn, err := net.Dial("unix", c.PolicySocket)
	for ; err != nil && time.Now().Before(deadline); conn, err = net.Dial("unix", c.PolicySocket) {
		time.Sleep(policyPoll) // retry, because the node process might be starting
	}
	if err != nil {
		return types.NewError(types.ErrTryAgainLater, "wait for network policies: "+err.Error(), "the component network-policy of the node is not running")
	}
	defer conn.Close()
	_ = conn.SetDeadline(deadline)
	var response PolicyResponse
	err = errors.Join(json.NewEncoder(conn).Encode(Pod{podName: l.Pod, Address: l.Address, SecondAddress: l.SecondAddress}), json.NewDecoder(conn).Decode(&response))
	if err == nil && response.Error != "" {
		err = errors.New(response.Error)
	}
	if err != nil {
		return types.NewError(types.ErrTryAgainLater, "wait for network policies: "+err.Error(), "")
	}
	return nil
}
