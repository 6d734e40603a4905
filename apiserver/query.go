package apiserver

import (
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"
)

// RegisterQuery registers a conversion from URL queries, such as ?follow=true&tailLines=5, to an
// options type. Parameters are matched to the JSON names of the type's fields. The packages of the
// wire types do not contain such conversions. Fields can be strings, booleans, numbers, times, and
// pointers to these types.
func RegisterQuery[T runtime.Object](scheme *runtime.Scheme) error {
	return scheme.AddConversionFunc((*url.Values)(nil), newObject[T](), func(from, to any, _ conversion.Scope) error {
		return readQuery(*from.(*url.Values), reflect.ValueOf(to).Elem())
	})
}

func readQuery(query url.Values, into reflect.Value) error {
	for i := range into.NumField() {
		field := into.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if field.Anonymous || name == "" || name == "metadata" || !query.Has(name) {
			continue
		}
		if err := setText(into.Field(i), query.Get(name)); err != nil {
			return fmt.Errorf("read parameter %q: %w", name, err)
		}
	}
	return nil
}

func setText(value reflect.Value, text string) (err error) {
	if at, ok := value.Addr().Interface().(*metav1.Time); ok {
		return at.UnmarshalQueryParameter(text)
	}
	switch value.Kind() {
	case reflect.Pointer:
		value.Set(reflect.New(value.Type().Elem()))
		return setText(value.Elem(), text)
	case reflect.String:
		value.SetString(text)
	case reflect.Bool:
		// As everywhere in Kubernetes, a parameter without a value means true.
		value.SetBool(!strings.EqualFold(text, "false") && text != "0")
	case reflect.Int, reflect.Int32, reflect.Int64:
		var number int64
		number, err = strconv.ParseInt(text, 10, value.Type().Bits())
		value.SetInt(number)
	default:
		err = fmt.Errorf("parameters of type %s are not supported", value.Type())
	}
	return err
}
