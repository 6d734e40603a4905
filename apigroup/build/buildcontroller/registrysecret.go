package buildcontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// defaultSecrets sets the secrets that a build does not specify: credentials for the build's images
// and for its source repository. It selects them from the secrets of the build's service account.
// output is the build's original output. If output is an image stream tag, defaultSecrets fails
// unless it finds a push secret.
func (m *podFactory) defaultSecrets(ctx context.Context, build *buildv1.Build, output *corev1.ObjectReference) error {
	spec := &build.Spec
	spec.ServiceAccount = instantiate.AccountOf(&spec.CommonSpec)
	if msgs := validation.ValidateServiceAccountName(spec.ServiceAccount, false); len(msgs) > 0 {
		return &reasonError{reason: buildv1.StatusReasonCannotRetrieveServiceAccount, message: "The name of the service account is not valid.",
			cause: fmt.Errorf("read service account %.253q: the name is not valid: %s", spec.ServiceAccount, strings.Join(msgs, ", ")), final: true}
	}
	account, err := m.secrets.ServiceAccounts(build.Namespace).Get(ctx, spec.ServiceAccount, metav1.GetOptions{})
	if err != nil {
		return &reasonError{reason: buildv1.StatusReasonCannotRetrieveServiceAccount, message: "Unable to look up the service account secrets for this build.",
			cause: fmt.Errorf("read service account %q: %w", spec.ServiceAccount, err)}
	}
	all, err := m.accountSecrets(ctx, account)
	if err != nil {
		return err
	}
	if git := spec.Source.Git; git != nil && spec.Source.SourceSecret == nil {
		spec.Source.SourceSecret = sourceSecret(all, git.URI)
	}
	registrySecrets := credentials(all)
	if resolved := spec.Output.To; resolved != nil && spec.Output.PushSecret == nil {
		spec.Output.PushSecret = matchingSecret(registrySecrets, resolved.Name)
		if spec.Output.PushSecret == nil && output.Kind == instantiate.TagKind {
			return &reasonError{reason: buildv1.StatusReasonMissingPushSecret, message: "Missing push secret.",
				cause: fmt.Errorf("service account %q of build %q has no secret for %s yet", account.Name, build.Name, resolved.Name)}
		}
	}
	if from := instantiate.From(&spec.Strategy); from != nil {
		if secret := pullSecretOf(&spec.Strategy); *secret == nil {
			*secret = matchingSecret(registrySecrets, from.Name)
		}
	}
	for i := range spec.Source.Images {
		if image := &spec.Source.Images[i]; image.PullSecret == nil {
			image.PullSecret = matchingSecret(registrySecrets, image.From.Name)
		}
	}
	return nil
}

// accountSecrets returns a service account's secrets.
func (m *podFactory) accountSecrets(ctx context.Context, account *corev1.ServiceAccount) (secrets []corev1.Secret, err error) {
	var names []string
	for _, secret := range account.Secrets {
		names = append(names, secret.Name)
	}
	for _, secret := range account.ImagePullSecrets {
		names = append(names, secret.Name)
	}
	seen := map[string]bool{}
	for _, name := range names {
		if seen[name] {
			continue
		}
		seen[name] = true
		secret, err := m.secrets.Secrets(account.Namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read secret %q: %w", name, err)
		}
		secrets = append(secrets, *secret)
	}
	return secrets, nil
}

// credentials returns the secrets that contain registry credentials.
func credentials(secrets []corev1.Secret) []corev1.Secret {
	return slices.DeleteFunc(slices.Clone(secrets), func(secret corev1.Secret) bool {
		return secret.Type != corev1.SecretTypeDockercfg && secret.Type != corev1.SecretTypeDockerConfigJson
	})
}

// matchingSecret returns the first secret with credentials for an image's repository, or nil.
func matchingSecret(secrets []corev1.Secret, image string) *corev1.LocalObjectReference {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil // the builder reports the error
	}
	for _, secret := range secrets {
		// Ignore the error, because an invalid secret provides no credentials.
		chain, _ := registryclient.KeychainOf([]corev1.Secret{secret})
		if auth, err := chain.Resolve(reference.Context()); err == nil && auth != authn.Anonymous {
			return &corev1.LocalObjectReference{Name: secret.Name}
		}
	}
	return nil
}
