package hosts

import (
	"context"
	"crypto/tls"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/pki/join"
)

// describe returns the cluster's description for a host that has already joined as a node. The host
// authenticates with its client certificate. The guard has already rejected the certificates of
// removed hosts.
func (d *door) describe(ctx context.Context, connection *tls.ConnectionState, node string) (*join.Response, error) {
	refusal := Refuse("the host needs a token, or the certificate of node %s; create a token with `slipway token create` on a master", node)
	if connection == nil || len(connection.PeerCertificates) == 0 {
		return nil, refusal
	}
	cert := connection.PeerCertificates[0]
	name, isNode := strings.CutPrefix(cert.Subject.CommonName, userOfNode)
	if !isNode || name != node || !slices.Contains(cert.Subject.Organization, groupOfNodes) || !(&guard{authority: d.Authority}).isIssued(cert) {
		return nil, refusal
	}
	hosts, err := register{d.client}.read(ctx)
	if err != nil {
		return nil, err
	}
	if host, joined := hosts[node]; !joined || host.removed() {
		return nil, unknownNode(node)
	}
	response, err := d.Response()
	response.Role = join.RoleNode
	return &response, err
}

// unknownNode returns the error for a host without an entry in the register. For example, the host
// might have joined after the backup from which the cluster was restored.
func unknownNode(node string) Refusal {
	return Refuse("the cluster has no host %s; run `slipway leave --force` on the host, and let it join with a new token", node)
}

// checkRenewal returns an error if the requesting host may not use a token for an existing node.
// node is the token's node, or "" if the token is for new hosts. requested is the requesting host's
// node, and host is the host's entry.
func checkRenewal(node, requested string, host Host) error {
	switch {
	case node == "":
		return nil
	case node != requested:
		return Refuse("the token is for the host %s, but this host is %s; create another token with `slipway token create --node %s` on a master", node, requested, requested)
	case host.Joined.IsZero() || host.removed():
		return unknownNode(node)
	case host.Role == join.RoleMaster:
		return Refuse("%s is a master, which issues its own certificates; start it with `slipway up`", node)
	}
	return nil
}

// CheckNode returns an error if no token can be created for an existing node. Such a token can be
// created only for the node of a host that has joined and is not a master.
func CheckNode(ctx context.Context, client kubernetes.Interface, node string) error {
	hosts, err := register{client}.read(ctx)
	if err != nil {
		return err
	}
	if err := checkRenewal(node, node, hosts[node]); err != nil {
		return fmt.Errorf("create token for node %q: %w", node, err)
	}
	return nil
}

// isForNode reports whether the token with the given ID is for the host of the given node.
func (t Tokens) isForNode(ctx context.Context, id, node string) (bool, error) {
	secret, err := t.Client.CoreV1().Secrets(namespace).Get(ctx, secretName(id), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil // the token was revoked
	}
	if err != nil {
		return false, fmt.Errorf("read token %q: %w", id, err)
	}
	return secret.Type == corev1.SecretTypeBootstrapToken && string(secret.Data[nodeKey]) == node, nil
}
