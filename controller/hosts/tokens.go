package hosts

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/pki/join"
)

// Keys in a token's secret. The first four keys are the same as in upstream's bootstrap tokens. The
// upstream key token-secret is omitted, because it would contain the secret part of the token.
const (
	idKey     = "token-id"
	expiryKey = "expiration"
	usageKey  = "usage-bootstrap-authentication"
	groupsKey = "auth-extra-groups"

	hashKey  = "token-hash"
	roleKey  = "slipway-role"
	groupKey = "slipway-group"
	usesKey  = "slipway-uses"
	// nodeKey contains the name of an existing node whose host receives new certificates, or "".
	nodeKey = "slipway-node"
	// noRouterKey contains "true" if hosts receive no router credentials.
	noRouterKey = "slipway-no-router"
	// nodesKey contains a JSON object with an entry for each node that uses the token. It maps the
	// node's name to the name of the node's approved certificate signing request or, for a master,
	// to the hash of the master's key.
	nodesKey = "slipway-nodes"
)

// TokenInfo describes a token without its secret.
type TokenInfo struct {
	ID, Role, Group string
	Expiry          time.Time
	// Node is the name of an existing node. Only the host of this node can use the token, and
	// receives new certificates. If Node is "", the token is for new hosts.
	Node string
	// NoRouter means that the hosts run no router and receive no router credentials.
	NoRouter bool
	// Uses is the number of hosts that can join with the token. Nodes lists the nodes that have
	// used the token.
	Uses  int
	Nodes []string
}

// State returns "valid", "expired" or "used up".
func (i TokenInfo) State() string {
	switch {
	case time.Now().After(i.Expiry):
		return "expired"
	case len(i.Nodes) >= i.Uses:
		return "used up"
	}
	return "valid"
}

// Tokens stores tokens in secrets of upstream's bootstrap token type.
type Tokens struct {
	Client kubernetes.Interface
}

// Create stores a token. It stores only the hash of the token's secret.
func (t Tokens) Create(ctx context.Context, token join.Token, info TokenInfo) error {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: secretName(token.ID)},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			idKey: token.ID, expiryKey: info.Expiry.UTC().Format(time.RFC3339), usageKey: "true", groupsKey: join.Group,
			hashKey: token.SecretHash(), roleKey: info.Role, groupKey: info.Group, usesKey: strconv.Itoa(info.Uses),
			noRouterKey: strconv.FormatBool(info.NoRouter), nodeKey: info.Node,
		},
	}
	if _, err := t.Client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("store token %q: %w", token.ID, err)
	}
	return nil
}

// List returns all tokens, sorted by expiry.
func (t Tokens) List(ctx context.Context) ([]TokenInfo, error) {
	secrets, err := t.Client.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: "type=" + string(corev1.SecretTypeBootstrapToken),
	})
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	var infos []TokenInfo
	for i := range secrets.Items {
		if len(secrets.Items[i].Data[hashKey]) > 0 {
			infos = append(infos, infoOf(&secrets.Items[i]))
		}
	}
	slices.SortFunc(infos, func(a, b TokenInfo) int { return a.Expiry.Compare(b.Expiry) })
	return infos, nil
}

// Revoke deletes a token. Hosts that have already joined with the token stay in the cluster.
func (t Tokens) Revoke(ctx context.Context, id string) error {
	err := t.Client.CoreV1().Secrets(namespace).Delete(ctx, secretName(id), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("revoke token %q: it does not exist; see `slipway token list`", id)
	}
	if err != nil {
		return fmt.Errorf("revoke token %q: %w", id, err)
	}
	return nil
}

// check returns the secret for a valid token, or one of the token errors.
func (t Tokens) check(ctx context.Context, token join.Token) (*corev1.Secret, error) {
	secret, err := t.Client.CoreV1().Secrets(namespace).Get(ctx, secretName(token.ID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, join.ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	if secret.Type != corev1.SecretTypeBootstrapToken || !token.Matches(secret.Data[hashKey]) {
		return nil, join.ErrUnknown
	}
	if time.Now().After(infoOf(secret).Expiry) {
		return nil, join.ErrExpired
	}
	return secret, nil
}

// claim records that a node uses a token. The node can repeat the claim until its host has been
// removed. A master must also use the same key when it repeats the claim. Otherwise, another host
// with the token would receive the private keys.
func (t Tokens) claim(ctx context.Context, token join.Token, request join.Request, removed bool) error {
	return t.update(ctx, token.ID, func(secret *corev1.Secret) error {
		nodes, info := nodesOf(secret), infoOf(secret)
		claim := ""
		if info.Role == join.RoleMaster {
			sum := sha256.Sum256(request.Key)
			claim = hex.EncodeToString(sum[:])
		}
		previous, exists := nodes[request.NodeName]
		switch {
		case exists && info.Role == join.RoleMaster && previous == claim && !removed:
			return nil
		case exists && info.Role == join.RoleNode && (previous == "" || !removed):
			return nil
		case exists || len(nodes) >= info.Uses:
			return join.ErrUsedUp
		}
		nodes[request.NodeName] = claim
		return setNodes(secret, nodes)
	})
}

// approve records that a node's certificate signing request is approved. It returns false if the
// node has not claimed the token. It also returns false if another request of the node has been
// approved, because a token grants only one certificate to a node. The approval of the same request
// can be repeated until the host has been removed.
func (t Tokens) approve(ctx context.Context, id, node, request string, removed bool) (approved bool, err error) {
	err = t.update(ctx, id, func(secret *corev1.Secret) error {
		nodes := nodesOf(secret)
		previous, claimed := nodes[node]
		approved = claimed && (previous == "" || previous == request && !removed) && infoOf(secret).Role == join.RoleNode
		if !approved || previous == request {
			return nil
		}
		nodes[node] = request
		return setNodes(secret, nodes)
	})
	if apierrors.IsNotFound(err) {
		return false, nil // the token was revoked
	}
	return approved, err
}

func (t Tokens) update(ctx context.Context, id string, change func(*corev1.Secret) error) error {
	secrets := t.Client.CoreV1().Secrets(namespace)
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret, err := secrets.Get(ctx, secretName(id), metav1.GetOptions{})
		if err != nil {
			return err
		}
		before := string(secret.Data[nodesKey])
		if err := change(secret); err != nil || string(secret.Data[nodesKey]) == before {
			return err
		}
		_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{})
		return err
	})
}

func secretName(id string) string { return "bootstrap-token-" + id }

func infoOf(secret *corev1.Secret) TokenInfo {
	info := TokenInfo{
		ID: string(secret.Data[idKey]), Role: string(secret.Data[roleKey]), Group: string(secret.Data[groupKey]),
		Node: string(secret.Data[nodeKey]),
	}
	// An invalid time is parsed as the zero time, so the token is treated as expired.
	info.Expiry, _ = time.Parse(time.RFC3339, string(secret.Data[expiryKey]))
	info.Uses, _ = strconv.Atoi(string(secret.Data[usesKey]))
	info.NoRouter, _ = strconv.ParseBool(string(secret.Data[noRouterKey])) // older tokens lack the key
	for node := range nodesOf(secret) {
		info.Nodes = append(info.Nodes, node)
	}
	slices.Sort(info.Nodes)
	return info
}

func nodesOf(secret *corev1.Secret) map[string]string {
	nodes := map[string]string{}
	_ = json.Unmarshal(secret.Data[nodesKey], &nodes) // fails only if the key is missing
	return nodes
}

func setNodes(secret *corev1.Secret, nodes map[string]string) error {
	data, err := json.Marshal(nodes)
	if err != nil {
		return fmt.Errorf("encode token nodes: %w", err)
	}
	secret.Data[nodesKey] = data
	return nil
}
