// Package hosts lets hosts join a cluster and removes hosts from it.
//
// A host joins with a token (package pki/join). It obtains credentials as follows:
//
//	slipway up --join               API server
//	  GET  /slipway/join         →  authority, which the token pins
//	  POST /slipway/join, token  →  settings; the token records the node
//	  signing request, token     →  certificate of the recorded node
//	  further signing requests   →  certificates of other components
//
// A host that joins as a master receives the private keys of the CAs instead, encrypted for this
// host, and issues its own certificates.
//
// The Kubernetes signers issue all other certificates. Controllers approves a node's first
// certificate, its serving certificates and the certificates of its components. The Kubernetes
// approver approves renewals of the node certificate.
//
// The kube-system/slipway-hosts ConfigMap is the register of hosts that have joined. A register
// entry outlives the host's Node. When a Node is deleted, Controllers records the time, and the API
// server rejects certificates that the host obtained before that time.
package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/internal/nodeaddress"
	"github.com/slipway-platform/slipway/pki/join"
)

// namespace is the namespace of the tokens and the register.
const namespace = metav1.NamespaceSystem

// registerName is the name of the register's ConfigMap.
const registerName = "slipway-hosts"

// Host is a register entry.
type Host struct {
	// Address is the host's address at the time of the join.
	Address string `json:"address"`
	// Joined is the time of the last join.
	Joined metav1.Time `json:"joined"`
	// Role is RoleNode or RoleMaster. An empty role means RoleNode.
	Role string `json:"role,omitempty"`
	// Group is the token's node group, or "".
	Group string `json:"group,omitempty"`
	// Token is the ID of the token that was used for the last join. Pending means that no
	// certificate has been issued for this join yet, so Joined is the time of the previous join.
	Token   string `json:"token,omitempty"`
	Pending bool   `json:"pending,omitempty"`
	// NoRouter means that the host receives no router credentials.
	NoRouter bool `json:"noRouter,omitempty"`
	// Removed is the time of the last removal. Certificates that were issued earlier are rejected.
	Removed *metav1.Time `json:"removed,omitempty"`
}

// removed reports whether the host was removed and has not joined again.
func (h Host) removed() bool { return h.Removed != nil && h.Joined.Before(h.Removed) }

// joinPeriod is how long a host's Node may take to appear after the host has joined.
const joinPeriod = 3 * time.Minute

// isJoining reports whether the host joined so recently that its Node might not exist yet.
func (h Host) isJoining() bool { return !h.removed() && time.Since(h.Joined.Time) < joinPeriod }

// hasJoined reports whether the host has joined with the given token and has received all its
// certificates. It also returns true if the host has joined again with another token.
func (h Host) hasJoined(token string) bool {
	return h.Token != token || !h.Pending && !h.isJoining()
}

// register reads and writes the host entries.
type register struct{ client kubernetes.Interface }

// read returns the entries, keyed by node name.
func (r register) read(ctx context.Context) (map[string]Host, error) {
	object, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, registerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string]Host{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read host register: %w", err)
	}
	return entries(object)
}

// Masters returns the addresses of the masters, keyed by the names of their nodes. It omits hosts
// without a Node, such as a master whose join failed. It returns no addresses if the cluster has
// never had more than one master.
func Masters(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	entries, err := register{client}.read(ctx)
	if err != nil {
		return nil, err
	}
	masters := map[string]string{}
	for name, host := range entries {
		if host.Role != join.RoleMaster || host.removed() {
			continue
		}
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read address of master %q: %w", name, err)
		}
		masters[name] = host.Address
		// Prefer the Node's address, because the address of a restored master can differ from the
		// register's.
		if address := nodeaddress.Internal(node, netip.Addr.Is4); address.IsValid() {
			masters[name] = address.String()
		}
	}
	return masters, nil
}

// RecordMaster records the first master, so that it can be removed like other masters.
func RecordMaster(ctx context.Context, client kubernetes.Interface, node, address string) error {
	return register{client}.change(ctx, node, func(h *Host) {
		if h.Role != join.RoleMaster || h.removed() {
			*h = Host{Address: address, Role: join.RoleMaster, Joined: now()}
		}
	})
}

func entries(object *corev1.ConfigMap) (map[string]Host, error) {
	hosts := map[string]Host{}
	for name, text := range object.Data {
		var host Host
		if err := json.Unmarshal([]byte(text), &host); err != nil {
			return nil, fmt.Errorf("parse entry of host %q: %w", name, err)
		}
		hosts[name] = host
	}
	return hosts, nil
}

// change updates a host's entry. It creates the register if it does not exist.
func (r register) change(ctx context.Context, name string, change func(*Host)) error {
	maps := r.client.CoreV1().ConfigMaps(namespace)
	err := retry.OnError(retry.DefaultBackoff, isConflict, func() error {
		object, err := maps.Get(ctx, registerName, metav1.GetOptions{})
		missing := apierrors.IsNotFound(err)
		if missing {
			object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: registerName}}
		} else if err != nil {
			return err
		}
		var host Host
		if text, exists := object.Data[name]; exists {
			if err := json.Unmarshal([]byte(text), &host); err != nil {
				return err
			}
		}
		change(&host)
		text, err := json.Marshal(host)
		if err != nil {
			return err
		}
		if object.Data == nil {
			object.Data = map[string]string{}
		}
		object.Data[name] = string(text)
		if missing {
			_, err = maps.Create(ctx, object, metav1.CreateOptions{})
			return err
		}
		_, err = maps.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("record host %q: %w", name, err)
	}
	return nil
}

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

// now returns the current time in whole seconds, which is the precision of certificate times.
func now() metav1.Time { return metav1.Time{Time: time.Now().Truncate(time.Second)} }
