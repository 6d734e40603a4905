package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/dualstack"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/pki/join"
)

// Options contains the settings of the feature.
type Options struct {
	// Authority returns the cluster's CA certificate in PEM format.
	Authority func() ([]byte, error)
	// Response returns the response for a joining host.
	Response func() (join.Response, error)
	// DNSDomain is the cluster's DNS domain.
	DNSDomain string
	// Reserved lists the names and addresses of the control plane. A host must not have any of
	// them, because its kubelet certificate would be valid for them.
	Reserved []string
	// Networks lists the pod and service networks, which contain no hosts.
	Networks []netip.Prefix
	// Pods lists the pod networks if another network plugin assigns pod addresses. In this case, a
	// pod can have any address in these networks on any node. If Pods is empty, a pod must have an
	// address in its node's subnet.
	Pods []netip.Prefix
	// DualStack derives a node's IPv6 subnet. It is optional.
	DualStack dualstack.Networks
	// OwnNode is the name of this host's node. This host issues the node's certificates itself.
	OwnNode string
	// Addresses, if set, is filled with the host addresses from the API server.
	Addresses *Addresses
	// Master admits a host as a master and returns the data for it. Calling Master again for the
	// same host returns the same data. The error can be ErrPreparing or a Refusal.
	Master func(context.Context, join.Request) (*join.Master, error)
}

// ErrPreparing means that a master is not ready for the request yet. The host retries the request.
var ErrPreparing = errors.New("the master is preparing to run together with other masters; if this host does not continue, repeat the command")

// Feature serves the path that hosts use to join, accepts join tokens as bearer tokens, rejects
// certificates of removed hosts, and checks the objects that joined hosts write.
func Feature(o Options) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{o.admission()}, Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		if o.Addresses != nil {
			o.Addresses.set(deps.Informers.Core().V1().Nodes().Lister())
		}
		tokens := Tokens{deps.Kube}
		guard := &guard{register: register{deps.Kube}, ownNode: o.OwnNode, authority: o.Authority}
		return apiserver.Hooks{
			Authenticators: []authenticator.Request{bearer{tokens, register{deps.Kube}}},
			Filters:        []func(http.Handler) http.Handler{guard.filter},
			Handlers: []apiserver.Handler{
				{Path: join.Path, Public: true, Handler: &door{o, deps.Kube, tokens}},
			},
		}, nil
	}}
}

// bearer authenticates requests that use a join token. It stops accepting a token when all hosts
// that can use it have joined.
type bearer struct {
	tokens   Tokens
	register register
}

// AuthenticateRequest implements authenticator.Request. It ignores other credentials.
func (b bearer) AuthenticateRequest(r *http.Request) (*authenticator.Response, bool, error) {
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || !strings.HasPrefix(text, join.Prefix) {
		return nil, false, nil
	}
	token, err := join.Parse(text)
	if err != nil {
		return nil, false, err
	}
	secret, err := b.tokens.check(r.Context(), token)
	if err != nil {
		return nil, false, err
	}
	info := infoOf(secret)
	if info.Role != join.RoleNode {
		return nil, false, nil // masters issue their own certificates
	}
	if len(info.Nodes) >= info.Uses {
		hosts, err := b.register.read(r.Context())
		if err != nil {
			return nil, false, err
		}
		joining := func(node string) bool { return !hosts[node].hasJoined(token.ID) }
		if !slices.ContainsFunc(info.Nodes, joining) {
			return nil, false, join.ErrUsedUp
		}
	}
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: join.UserPrefix + token.ID, Groups: []string{"system:bootstrappers", join.Group},
	}}, true, nil
}

// door is the HTTP handler for join.Path.
type door struct {
	Options
	client kubernetes.Interface
	tokens Tokens
}

// ServeHTTP implements http.Handler.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		authority, err := d.Authority()
		if err != nil {
			http.Error(w, "the master cannot read its certificate authority", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(authority) // the client might have disconnected
	case http.MethodPost:
		response, err := d.join(r)
		if refusal, ok := errors.AsType[Refusal](err); ok {
			http.Error(w, refusal.Error(), http.StatusForbidden)
			return
		}
		if errors.Is(err, ErrPreparing) {
			w.Header().Set("Retry-After", "1")
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(response) // the client might have disconnected
	default:
		http.Error(w, "use GET or POST", http.StatusMethodNotAllowed)
	}
}

// Refusal is an error that retrying the request cannot resolve.
type Refusal struct{ error }

// Refuse formats a Refusal, as fmt.Errorf does.
func Refuse(format string, values ...any) Refusal { return Refusal{fmt.Errorf(format, values...)} }

// join checks a join request and records the host.
func (d *door) join(r *http.Request) (*join.Response, error) {
	var request join.Request
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, Refusal{errors.New("the request is not valid; use the same version of slipway on all hosts")}
	}
	ctx := r.Context()
	if request.Token == "" {
		return d.describe(ctx, r.TLS, request.NodeName)
	}
	token, err := join.Parse(request.Token)
	if err != nil {
		return nil, Refusal{fmt.Errorf("the token is not valid: %w", err)}
	}
	secret, err := d.tokens.check(ctx, token)
	if errors.Is(err, join.ErrUnknown) || errors.Is(err, join.ErrExpired) {
		return nil, Refusal{err}
	}
	if err != nil {
		return nil, err
	}
	info := infoOf(secret)
	role := info.Role
	if info.NoRouter && role == join.RoleNode && !request.NoRouter {
		return nil, Refuse("the token is for hosts without a router; omit --router, or create another token with `slipway token create` on a master")
	}
	if request.Role != "" && role != request.Role {
		return nil, Refusal{fmt.Errorf("the token is for the role %s, but the host joins as %s; create another one with `slipway token create --role %s` on a master", role, request.Role, request.Role)}
	}
	request.Role = role
	hosts, err := register{d.client}.read(ctx)
	if err != nil {
		return nil, err
	}
	host := hosts[request.NodeName]
	if err := checkRenewal(info.Node, request.NodeName, host); err != nil {
		return nil, err
	}
	if err := d.checkHost(ctx, request, info.Node); err != nil {
		return nil, err
	}
	if info.Node == "" && host.Token != token.ID && host.isJoining() {
		return nil, refuseName(request.NodeName)
	}
	if err := d.tokens.claim(ctx, token, request, host.removed()); errors.Is(err, join.ErrUsedUp) {
		return nil, Refusal{err}
	} else if err != nil {
		return nil, err
	}
	group := info.Group
	if info.Node != "" {
		group = host.Group
	}
	if err := d.record(ctx, token, request, group, info.Node != ""); err != nil {
		return nil, err
	}
	response, err := d.Response()
	if err != nil {
		return nil, err
	}
	response.Role = role
	if role == join.RoleMaster {
		response.Master, err = d.admit(ctx, token, request)
	}
	return &response, err
}

// record records the host, unless a host has used the node name with another token since the check.
// If renewal is true, the token is for the existing host.
func (d *door) record(ctx context.Context, token join.Token, request join.Request, group string, renewal bool) error {
	taken := false
	err := register{d.client}.change(ctx, request.NodeName, func(h *Host) {
		if taken = !renewal && h.Token != token.ID && h.isJoining(); taken {
			return
		}
		h.Pending = h.Pending || h.Token != token.ID
		// A renewal gives a host no router credentials that it did not have before.
		h.NoRouter = request.NoRouter || renewal && h.NoRouter
		h.Address, h.Group, h.Role, h.Token = request.Address, group, request.Role, token.ID
		// A master requests no certificate, so no approval records the join time. Record it here.
		if request.Role == join.RoleMaster {
			h.Joined, h.Pending = now(), false
		}
	})
	if err == nil && taken {
		return refuseName(request.NodeName)
	}
	return err
}

func refuseName(node string) Refusal {
	return Refuse("another host is joining as %s; set another nodeName in node-config.yaml of this host, or try again in %s if it was this host", node, joinPeriod)
}

// admit returns the data for a new master, encrypted for that master.
func (d *door) admit(ctx context.Context, token join.Token, request join.Request) ([]byte, error) {
	if own := version.Slipway(); request.Version != own {
		return nil, Refuse("the masters run slipway %s, but the host runs %s; install the same version", own, request.Version)
	}
	peer, err := url.Parse(request.PeerURL)
	if err != nil || peer.Scheme != "https" || peer.Hostname() != request.Address || peer.Port() == "" {
		return nil, Refuse("the address %s of the host's etcd is not https://%s:PORT; set etcdConfig.peerAddress in master-config.yaml", request.PeerURL, request.Address)
	}
	master, err := d.Master(ctx, request)
	if err != nil {
		return nil, err
	}
	message, err := json.Marshal(master)
	if err != nil {
		return nil, fmt.Errorf("encode response for a master: %w", err)
	}
	sealed, err := token.Seal(request.Key, message)
	if err != nil {
		return nil, Refusal{err}
	}
	return sealed, nil
}

// checkHost returns an error if the host cannot become a node in the cluster. existing is the name
// of the host's existing node, or "".
func (d *door) checkHost(ctx context.Context, request join.Request, existing string) error {
	if messages := validation.IsDNS1123Subdomain(request.NodeName); len(messages) > 0 {
		return Refusal{fmt.Errorf("the host's name %q cannot be the name of a node: %s; set nodeName in node-config.yaml", request.NodeName, messages[0])}
	}
	if request.DNSDomain != d.DNSDomain {
		return Refusal{fmt.Errorf("the cluster's DNS domain is %s, but the host's is %s; set dnsDomain: %s in node-config.yaml", d.DNSDomain, request.DNSDomain, d.DNSDomain)}
	}
	if err := d.checkReserved(request); err != nil {
		return err
	}
	if existing == "" {
		if err := d.checkName(ctx, request.NodeName); err != nil {
			return err
		}
	}
	nodes, err := d.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	for _, node := range nodes.Items {
		for _, address := range node.Status.Addresses {
			// Ignore a node of the same name, because the API server's cache can still contain the
			// former node.
			if address.Address == request.Address && node.Name != request.NodeName {
				return Refusal{fmt.Errorf("node %s already has the address %s; set nodeIP in node-config.yaml of the new host to its own address", node.Name, request.Address)}
			}
		}
	}
	return nil
}

// checkName returns an error if the cluster has a node with this name. If the node's host has
// already left the cluster, checkName first waits a few seconds for the Node to be deleted.
func (d *door) checkName(ctx context.Context, name string) error {
	var node *corev1.Node
	err := wait.PollUntilContextTimeout(ctx, refreshInterval/4, 2*voidDelay, true, func(ctx context.Context) (gone bool, err error) {
		node, err = d.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err == nil && node.DeletionTimestamp == nil {
			err = Refuse("the cluster already has a node %s; set another nodeName in node-config.yaml of the new host, or remove the previous host with: oc delete node %s", name, name)
		}
		return false, err
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return Refuse("node %s is still being deleted, see: oc describe node %s; repeat the command when the node no longer exists", name, name)
	}
	return err
}

// checkReserved returns an error if the request uses a name or address of the platform.
func (d *door) checkReserved(request join.Request) error {
	name := request.NodeName
	if name == d.OwnNode || slices.Contains(d.Reserved, name) || strings.HasSuffix(name, ".svc") || strings.HasSuffix(name, "."+d.DNSDomain) {
		return Refusal{fmt.Errorf("the name %s belongs to the cluster itself; set another nodeName in node-config.yaml of the new host", name)}
	}
	address, err := netip.ParseAddr(request.Address)
	reserved := err != nil || !address.Is4() || !address.IsGlobalUnicast() || slices.Contains(d.Reserved, request.Address) ||
		slices.ContainsFunc(d.Networks, func(network netip.Prefix) bool { return network.Contains(address) })
	if reserved {
		return Refusal{fmt.Errorf("a host cannot have the address %s; set nodeIP in node-config.yaml of the new host to its own IPv4 address", request.Address)}
	}
	return nil
}
