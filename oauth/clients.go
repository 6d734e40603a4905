package oauth

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"

	oauthv1 "github.com/openshift/api/oauth/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/oauth/client"
	"github.com/slipway-platform/slipway/oauth/store"
)

// consolePath is the path of this server's web console.
const consolePath = "/console/"

// serverAddresses returns this server's redirect URIs for the clients that every cluster has, keyed
// by client name.
func serverAddresses(publicURL string) map[string]string {
	return map[string]string{
		client.WebConsole: publicURL + consolePath, client.Browser: publicURL + displayPath, client.Challenging: publicURL + implicitPath,
	}
}

// ensureClients creates the OAuth clients that every cluster has, and adds this server's addresses
// to existing clients. It keeps an administrator's other changes. If several is true, it also keeps
// the addresses of the other servers.
func ensureClients(ctx context.Context, clients store.Objects[*oauthv1.OAuthClient],
	publicURL, consoleURL string, several bool) error {
	addresses := serverAddresses(publicURL)
	console := []string{addresses[client.WebConsole]}
	challenge := client.ChallengeRequired
	if consoleURL != "" && consoleURL != console[0] {
		// The OpenShift 3.11 web console has no secret and sends no code challenge. This is safe
		// because its codes are sent to a single address, over TLS.
		console, challenge = append(console, consoleURL), client.ChallengeOptional
	}
	for _, desired := range []*oauthv1.OAuthClient{
		{ObjectMeta: metav1.ObjectMeta{
			Name: client.WebConsole, Annotations: map[string]string{client.ChallengeAnnotation: challenge},
		}, RedirectURIs: console},
		{ObjectMeta: metav1.ObjectMeta{Name: client.Browser}, RedirectURIs: []string{addresses[client.Browser]}, Secret: rand.Text()},
		{ObjectMeta: metav1.ObjectMeta{Name: client.Challenging}, RedirectURIs: []string{addresses[client.Challenging]}, RespondWithChallenges: true},
	} {
		desired.GrantMethod = oauthv1.GrantHandlerAuto
		// Retry conflicts, because another server can make the same change at the same time.
		err := retry.OnError(retry.DefaultBackoff, isConflict, func() error { return ensureClient(ctx, clients, desired, several) })
		if err != nil {
			return fmt.Errorf("create OAuth client %q: %w", desired.Name, err)
		}
	}
	return nil
}

func isConflict(err error) bool { return apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) }

func ensureClient(ctx context.Context, clients store.Objects[*oauthv1.OAuthClient],
	desired *oauthv1.OAuthClient, several bool) error {
	existing, err := clients.Get(ctx, desired.Name)
	if apierrors.IsNotFound(err) {
		_, err = clients.Create(ctx, desired)
		return err
	}
	if err != nil {
		return err
	}
	changed := existing.DeepCopy()
	for _, address := range desired.RedirectURIs {
		switch {
		case slices.Contains(changed.RedirectURIs, address):
		case several:
			changed.RedirectURIs = append(changed.RedirectURIs, address)
		default:
			// Replace the URIs: a request without a redirect URI requires a client with exactly one
			// URI.
			changed.RedirectURIs = desired.RedirectURIs
		}
	}
	for name, value := range desired.Annotations {
		// Earlier versions exempted their own console from the code challenge, so replace their
		// value.
		if current, ok := changed.Annotations[name]; !ok || value == client.ChallengeRequired && current == client.ChallengeOptional {
			metav1.SetMetaDataAnnotation(&changed.ObjectMeta, name, value)
		}
	}
	if slices.Equal(changed.RedirectURIs, existing.RedirectURIs) && maps.Equal(changed.Annotations, existing.Annotations) {
		return nil
	}
	_, err = clients.Update(ctx, changed)
	return err
}

// RemoveServer removes the addresses of a server that has left the cluster from the clients that
// every cluster has. Otherwise, a new host with the same IP address could receive tokens.
func RemoveServer(ctx context.Context, objects dynamic.Interface, publicURL string) error {
	for name, address := range serverAddresses(publicURL) {
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return removeAddress(ctx, objects, name, address) })
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove %q from OAuth client %q: %w", address, name, err)
		}
	}
	return nil
}

func removeAddress(ctx context.Context, objects dynamic.Interface, name, address string) error {
	clients := objects.Resource(oauthv1.GroupVersion.WithResource("oauthclients"))
	object, err := clients.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	addresses, _, err := unstructured.NestedStringSlice(object.Object, "redirectURIs")
	i := slices.Index(addresses, address)
	if err != nil || i < 0 {
		return err
	}
	if err := unstructured.SetNestedStringSlice(object.Object, slices.Delete(addresses, i, i+1), "redirectURIs"); err != nil {
		return err
	}
	_, err = clients.Update(ctx, object, metav1.UpdateOptions{})
	return err
}
