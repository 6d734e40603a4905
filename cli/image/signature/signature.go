// Package signature implements `oc adm verify-image-signature`. It uses public keys to verify image
// signatures, which are OpenPGP messages, and records the results in the Image objects.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 12. The signed text is
// an "atomic container signature".
package signature

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/client-go/util/homedir"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/internal/imagesignature"
)

// Condition types of a signature.
const (
	trustedCondition  = "Trusted"
	forImageCondition = "ForImage"
)

// verifying holds the state of `oc adm verify-image-signature`.
type verifying struct {
	genericiooptions.IOStreams
	images imageclient.ImageInterface
	user   string

	identity, keyFile string
	save, removeAll   bool
}

// New returns the `oc adm verify-image-signature` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	v := &verifying{IOStreams: streams}
	command := &cobra.Command{
		Use: "verify-image-signature IMAGE --expected-identity=EXPECTED_IDENTITY [--save]", Short: "Verify the image identity contained in the image signature",
		Long: `Verify the signatures of an image with public keys, and that they are for the image and its expected identity, which is the name with which
clients pull it. Without --save, the command changes nothing.

The keys are in the file of --public-key, which gpg --export wrote, or in pubring.gpg in GNUPGHOME or ~/.gnupg. The user needs the role system:image-auditor.`,
		Example: `  # Verify the signatures of an image
  oc adm verify-image-signature sha256:c841e9b64e4579bd56c794bdd7c36e1c257110fd2404bebbb8b613e4935228c4 \
    --expected-identity=registry.example.com/shop/app:v1 --public-key=release.gpg

  # Also record the result in the image
  oc adm verify-image-signature sha256:c841e9b64e4579bd56c794bdd7c36e1c257110fd2404bebbb8b613e4935228c4 \
    --expected-identity=registry.example.com/shop/app:v1 --public-key=release.gpg --save

  # Remove all results
  oc adm verify-image-signature sha256:c841e9b64e4579bd56c794bdd7c36e1c257110fd2404bebbb8b613e4935228c4 --remove-all`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(v.validate(args))
			util.CheckErr(v.connect(command.Context(), factory))
			util.CheckErr(v.run(command.Context(), args[0], time.Now()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&v.identity, "expected-identity", "", "Expected identity of the image, such as registry.example.com/shop/app:v1.")
	flags.StringVar(&v.keyFile, "public-key", "", "File with public keys, instead of GnuPG's pubring.gpg.")
	flags.BoolVar(&v.save, "save", false, "Record in the image whether its signatures are trusted.")
	flags.BoolVar(&v.removeAll, "remove-all", false, "Remove the results of all signatures of the image.")
	return command
}

func (v *verifying) validate(args []string) error {
	switch {
	case len(args) != 1 || !strings.HasPrefix(args[0], "sha256:"):
		return errors.New("specify one image by its digest, such as sha256:c841...; to print the digest, run: oc get istag STREAM:TAG -o jsonpath={.image.metadata.name}")
	case v.removeAll && (v.save || v.identity != ""):
		return errors.New("use --remove-all without other flags")
	case !v.removeAll && v.identity == "":
		return errors.New("set the expected identity of the image with --expected-identity")
	}
	return nil
}

func (v *verifying) connect(ctx context.Context, factory util.Factory) error {
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	client, err := imageclient.NewForConfig(config)
	if err != nil {
		return err
	}
	v.images = client.Images()
	reviews, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return err
	}
	review, err := reviews.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("read current user: %w", err)
	}
	v.user = review.Status.UserInfo.Username
	return nil
}

// keys reads the public keys from --public-key or GnuPG's key ring.
func (v *verifying) keys() (openpgp.EntityList, error) {
	file := v.keyFile
	if file == "" {
		home := os.Getenv("GNUPGHOME")
		if home == "" {
			home = filepath.Join(homedir.HomeDir(), ".gnupg")
		}
		file = filepath.Join(home, "pubring.gpg")
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read public keys: %w; set --public-key to a file that gpg --export wrote", err)
	}
	keys, err := imagesignature.Keys(content)
	if err != nil {
		return nil, fmt.Errorf("read public keys %q: %w", file, err)
	}
	return keys, nil
}

func (v *verifying) run(ctx context.Context, name string, now time.Time) error {
	if v.removeAll {
		return v.forget(ctx, name)
	}
	keys, err := v.keys()
	if err != nil {
		return err
	}
	image, err := v.images.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if len(image.Signatures) == 0 {
		return fmt.Errorf("image %q has no signatures", name)
	}
	results := map[string]imagev1.ImageSignature{}
	trusted := 0
	for _, signature := range image.Signatures {
		claims, err := imagesignature.Open(signature.Content, keys)
		if err == nil {
			err = check(claims, name, v.identity)
		}
		v.setResult(&signature, claims, err, now)
		results[signature.Name] = signature
		if err != nil {
			fmt.Fprintf(v.ErrOut, "error verifying signature %s for image %s: %v\n", signature.Name, name, err)
			continue
		}
		trusted++
		fmt.Fprintf(v.Out, "image %q identity is now confirmed (signed by GPG key %q)\n", name, claims.Signer)
	}
	if v.save {
		if err := v.store(ctx, name, results); err != nil {
			return err
		}
	} else if trusted > 0 {
		fmt.Fprintln(v.ErrOut, "nothing was changed: use --save to record this in the image")
	}
	if trusted == 0 {
		return fmt.Errorf("none of the %d signatures of image %q is trusted", len(image.Signatures), name)
	}
	return nil
}

// check returns an error unless the signature applies to this image and identity.
func check(c *imagesignature.Claims, image, identity string) error {
	if c.Digest != image {
		return fmt.Errorf("the signature is for the image %q", c.Digest)
	}
	if c.Identity != identity {
		return fmt.Errorf("the signature is for the identity %q, not for the expected identity %q", c.Identity, identity)
	}
	return nil
}

// setResult records the verification result in the signature. problem is nil if the signature is
// valid.
func (v *verifying) setResult(signature *imagev1.ImageSignature, existing *imagesignature.Claims, problem error, now time.Time) {
	clearResult(signature)
	condition := imagev1.SignatureCondition{
		Type: trustedCondition, Status: corev1.ConditionTrue, LastProbeTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now),
		Reason: "ManualVerification", Message: fmt.Sprintf("verified by user %q", v.user),
	}
	if problem != nil {
		condition.Status, condition.Message = corev1.ConditionFalse, fmt.Sprintf("verified by user %q: %v", v.user, problem)
		signature.Conditions = []imagev1.SignatureCondition{condition}
		return
	}
	about := condition
	about.Type = forImageCondition
	signature.Conditions = []imagev1.SignatureCondition{condition, about}
	signature.ImageIdentity = existing.Identity
	signature.SignedClaims = map[string]string{"creator": existing.Creator}
	signature.IssuedBy = &imagev1.SignatureIssuer{}
	signature.IssuedBy.CommonName = existing.Signer
	if !existing.At.IsZero() {
		signature.Created = &metav1.Time{Time: existing.At}
	}
}

// clearResult removes the result of an earlier verification from a signature.
func clearResult(signature *imagev1.ImageSignature) {
	signature.Conditions, signature.SignedClaims, signature.ImageIdentity = nil, nil, ""
	signature.IssuedBy, signature.IssuedTo, signature.Created = nil, nil, nil
}

// store writes the results to the image. results is keyed by signature name. store skips a
// signature if its content has changed since the verification.
func (v *verifying) store(ctx context.Context, name string, results map[string]imagev1.ImageSignature) error {
	return v.change(ctx, name, func(signature *imagev1.ImageSignature) {
		if result, ok := results[signature.Name]; ok && bytes.Equal(result.Content, signature.Content) {
			result.DeepCopyInto(signature)
		}
	})
}

func (v *verifying) forget(ctx context.Context, name string) error {
	if err := v.change(ctx, name, clearResult); err != nil {
		return err
	}
	fmt.Fprintf(v.Out, "all signature verifications are removed from image %q\n", name)
	return nil
}

// change calls a function for each signature of an image, and then updates the image. It retries if
// the update conflicts with another update.
func (v *verifying) change(ctx context.Context, name string, change func(*imagev1.ImageSignature)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		image, err := v.images.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i := range image.Signatures {
			change(&image.Signatures[i])
		}
		_, err = v.images.Update(ctx, image, metav1.UpdateOptions{})
		return err
	})
}
