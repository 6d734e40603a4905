// Package hosts lets hosts join a cluster and removes them.
//
// A host joins with a token (package pki/join). Its path to credentials:
//
//	slipway up --join               API server
//	  GET  /slipway/join         →  authority, which the token pins
//	  POST /slipway/join, token  →  settings; the token records the node
//	  signing request, token     →  certificate of the recorded node
//	  further signing requests   →  certificates of other components
//
// A host that joins as a master gets the private keys of the authorities instead, encrypted for it,
// and issues its certificates itself.
//
// Kubernetes' own signers issue the certificates. Controllers approves the first certificate of a
// node, its serving certificates, and those of its components. Kubernetes' own approver approves
// renewals of the node's certificate.
//
// The ConfigMap kube-system/slipway-hosts is the register of hosts that joined. It outlives their
// Nodes: when a Node is deleted, Controllers records the time, and the API server rejects
// certificates that the host got before it.
package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/pki/join"
)

// namespace contains tokens and the register.
const namespace = metav1.NamespaceSystem

// registerName is the name of the ConfigMap of the register.
const registerName = "slipway-hosts"

// Host is an entry of the register.
type Host struct {
	// Address is the host's address at the time of the join.
	Address string `json:"address"`
	// Joined is the time of the last join.
	Joined metav1.Time `json:"joined"`
	// Role is RoleNode or RoleMaster; "" means RoleNode.
	Role string `json:"role,omitempty"`
	// Group is the node group of the token, or "".
	Group string `json:"group,omitempty"`
	// Token is the ID of the token of the last join. Pending means that this join has no certificate
	// yet, so that Joined is the time of the previous join.
	Token   string `json:"token,omitempty"`
	Pending bool   `json:"pending,omitempty"`
	// NoRouter means that the host gets no credentials of a router.
	NoRouter bool `json:"noRouter,omitempty"`
	// Removed is the time of the last removal. Certificates that were issued before are void.
	Removed *metav1.Time `json:"removed,omitempty"`
}

// removed reports whether the host was removed and has not joined again.
func (h Host) removed() bool { return h.Removed != nil && h.Joined.Before(h.Removed) }

// joinPeriod is how long the Node of a host may take to appear after the host has joined.
const joinPeriod = 3 * time.Minute

// isJoining reports whether the host has joined so recently that it might have no Node yet.
func (h Host) isJoining() bool { return !h.removed() && time.Since(h.Joined.Time) < joinPeriod }

// hasJoined reports whether the host has joined with a token and has all its certificates. A host
// that joined again with another token counts, too.
func (h Host) hasJoined(token string) bool {
	return h.Token != token || !h.Pending && !h.isJoining()
}

// register reads and writes the entries of hosts.
type register struct{ client kubernetes.Interface }

// read returns the entries by node name.
func (r register) read(ctx context.Context) (map[string]Host, error) {
	object, err := r.client.CoreV1().ConfigMaps(namespace).Get(ctx, registerName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return map[string]Host{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read register of hosts: %w", err)
	}
	return entries(object)
}

// RecordMaster records the first master, so that it can be removed like others.
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
			return nil, fmt.Errorf("read entry of host %q: %w", name, err)
		}
		hosts[name] = host
	}
	return hosts, nil
}

// change changes the entry of a host. It creates a missing register.
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

// now returns the time with the precision of certificates.
func now() metav1.Time { return metav1.Time{Time: time.Now().Truncate(time.Second)} }
