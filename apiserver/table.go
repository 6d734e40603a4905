package apiserver

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"
)

// Column is one column of a resource's table.
type Column[T Object] struct {
	// Name is the column heading, which clients print in upper case.
	Name string
	// Description is the column's description for clients.
	Description string
	// Wide means that the column is printed only with `-o wide`.
	Wide bool
	// Value returns the value of the column for an object: a string, a number or a boolean.
	Value func(T) any
}

// Age returns a column that shows an object's age in kubectl's format ("5m", "3d2h").
func Age[T Object]() Column[T] {
	return Column[T]{Name: "Age", Description: "Time since the object was created", Value: func(object T) any {
		return Since(object.GetCreationTimestamp())
	}}
}

// Since returns the time since t in kubectl's format.
func Since(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// Table returns a resource's table converter. The first column of the table is the name.
func Table[T Object](columns []Column[T]) rest.TableConvertor { return table[T](columns) }

type table[T Object] []Column[T]

// ConvertToTable returns the table of an object or a list.
func (columns table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if tableOptions, ok := options.(*metav1.TableOptions); !ok || !tableOptions.NoHeaders {
		result.ColumnDefinitions = columns.definitions()
	}
	list, isList := object.(metav1.ListInterface)
	if accessor, ok := object.(metav1.ListMetaAccessor); ok {
		list, isList = accessor.GetListMeta(), true
	}
	if !isList {
		item, ok := object.(T)
		if !ok {
			return nil, fmt.Errorf("print %T: not a %T", object, *new(T))
		}
		result.ResourceVersion = item.GetResourceVersion()
		result.Rows = []metav1.TableRow{columns.row(item)}
		return result, nil
	}
	result.ResourceVersion, result.Continue = list.GetResourceVersion(), list.GetContinue()
	result.RemainingItemCount = list.GetRemainingItemCount()
	return result, meta.EachListItem(object, func(item runtime.Object) error {
		result.Rows = append(result.Rows, columns.row(item.(T)))
		return nil
	})
}

func (columns table[T]) definitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{{Name: "Name", Type: "string", Format: "name", Description: "Name of the object"}}
	for _, column := range columns {
		definition := metav1.TableColumnDefinition{Name: column.Name, Type: "string", Description: column.Description}
		if column.Wide {
			definition.Priority = 1
		}
		definitions = append(definitions, definition)
	}
	return definitions
}

func (columns table[T]) row(object T) metav1.TableRow {
	cells := []any{object.GetName()}
	for _, column := range columns {
		cells = append(cells, column.Value(object))
	}
	return metav1.TableRow{Cells: cells, Object: runtime.RawExtension{Object: object}}
}
