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

// chooseSecrets finds, among the secrets of a build's service account, those for the registries that the build pulls from and pushes to, and for its source,
// where it names none.
// to is the output as its owner wrote it: one to the cluster's registry needs a secret.
func (m *maker) chooseSecrets(ctx context.Context, build *buildv1.Build, to *corev1.ObjectReference) error {
	spec := &build.Spec
	spec.ServiceAccount = instantiate.AccountOf(&spec.CommonSpec)
	if wrong := validation.ValidateServiceAccountName(spec.ServiceAccount, false); len(wrong) > 0 {
		return &problem{reason: buildv1.StatusReasonCannotRetrieveServiceAccount, message: "There can be no such service account.",
			cause: fmt.Errorf("read service account %.253q: its name is not valid: %s", spec.ServiceAccount, strings.Join(wrong, ", ")), final: true}
	}
	account, err := m.secrets.ServiceAccounts(build.Namespace).Get(ctx, spec.ServiceAccount, metav1.GetOptions{})
	if err != nil {
		return &problem{reason: buildv1.StatusReasonCannotRetrieveServiceAccount, message: "Unable to look up the service account secrets for this build.",
			cause: fmt.Errorf("read service account %q: %w", spec.ServiceAccount, err)}
	}
	all, err := m.secretsOf(ctx, account)
	if err != nil {
		return err
	}
	if git := spec.Source.Git; git != nil && spec.Source.SourceSecret == nil {
		spec.Source.SourceSecret = sourceSecret(all, git.URI)
	}
	known := credentials(all)
	if output := spec.Output.To; output != nil && spec.Output.PushSecret == nil {
		spec.Output.PushSecret = matching(known, output.Name)
		if spec.Output.PushSecret == nil && to.Kind == instantiate.TagKind {
			return &problem{reason: buildv1.StatusReasonMissingPushSecret, message: "Missing push secret.",
				cause: fmt.Errorf("service account %q of build %q has no secret for %s yet", account.Name, build.Name, output.Name)}
		}
	}
	if from := instantiate.From(&spec.Strategy); from != nil {
		if secret := pullSecretOf(&spec.Strategy); *secret == nil {
			*secret = matching(known, from.Name)
		}
	}
	for i := range spec.Source.Images {
		if image := &spec.Source.Images[i]; image.PullSecret == nil {
			image.PullSecret = matching(known, image.From.Name)
		}
	}
	return nil
}

// secretsOf are the secrets of an account.
func (m *maker) secretsOf(ctx context.Context, account *corev1.ServiceAccount) (found []corev1.Secret, err error) {
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
		found = append(found, *secret)
	}
	return found, nil
}

// credentials are those of the secrets that hold credentials of registries.
func credentials(secrets []corev1.Secret) []corev1.Secret {
	return slices.DeleteFunc(slices.Clone(secrets), func(secret corev1.Secret) bool {
		return secret.Type != corev1.SecretTypeDockercfg && secret.Type != corev1.SecretTypeDockerConfigJson
	})
}

// matching is the first of the secrets that has credentials for an image's repository, nil where none has.
func matching(secrets []corev1.Secret, image string) *corev1.LocalObjectReference {
	reference, err := name.ParseReference(image)
	if err != nil {
		return nil // the builder says what is wrong with it
	}
	for _, secret := range secrets {
		chain, _ := registryclient.KeychainOf([]corev1.Secret{secret}) // one that cannot be read has none
		if found, err := chain.Resolve(reference.Context()); err == nil && found != authn.Anonymous {
			return &corev1.LocalObjectReference{Name: secret.Name}
		}
	}
	return nil
}
