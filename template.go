package jig

import (
	"fmt"
	"reflect"
	"strings"
	"time"
)

// A template is a message in which the values are set apart from the words, so that a server can send the words alone: a value may be a secret, and
// errors end up in logs and on pages. [Templatef] makes one, [Text] returns the message, and [Fill] replaces its values. It is a text in which each
// value stands between two control characters; those of numbers and times begin with another one.
const (
	valueBegins  = '\x0e'
	numberBegins = '\x1c'
	valueEnds    = '\x0f'
)

// marks replaces the control characters of templates in values.
var marks = strings.NewReplacer(string(valueBegins), "\ufffd", string(numberBegins), "\ufffd", string(valueEnds), "\ufffd")

// Templatef returns the template of a message that is formatted as [fmt.Errorf] does. Its operands are values, except booleans, the codes and
// statuses of this package, and those that [Known] marks. The words of [Words], and of errors that have a method Template, stay words.
func Templatef(format string, args ...any) string {
	marked := make([]any, len(args))
	for i, arg := range args {
		marked[i] = operand{arg}
	}
	return fmt.Errorf(format, marked...).Error()
}

// Known marks an operand of [Errorf] or [Templatef] that belongs to the words of the message: a name or a limit that the program or its store
// knows, and that nobody sent with the request.
func Known(value any) any { return known{value} }

// Words makes a template an operand of [Errorf] or [Templatef].
func Words(template string) any { return words(template) }

// Text returns the message of a template.
func Text(template string) string {
	return Fill(template, func(value string, _ bool) string { return value })
}

// Fill returns the message of a template with each of its values replaced. A value that the message quotes has the escapes of Go. isNumber reports
// that the value is a number or a time, which may also be a limit of the program.
func Fill(template string, replace func(value string, isNumber bool) string) string {
	var b strings.Builder
	for {
		at := strings.IndexAny(template, string([]rune{valueBegins, numberBegins}))
		if at < 0 {
			return b.String() + template
		}
		value, rest, _ := strings.Cut(template[at+1:], string(valueEnds))
		b.WriteString(template[:at] + replace(value, template[at] == numberBegins))
		template = rest
	}
}

type words string

// String returns the message.
func (w words) String() string { return Text(string(w)) }

type known struct{ value any }

// Format implements [fmt.Formatter].
func (k known) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprintf(s, fmt.FormatString(s, verb), k.value)
}

// Error makes the operand acceptable to %w.
func (k known) Error() string { return fmt.Sprint(k.value) }

// operand is an operand of a template.
type operand struct{ value any }

// Error makes the operand acceptable to %w.
func (o operand) Error() string { return fmt.Sprint(o.value) }

// Format implements [fmt.Formatter].
func (o operand) Format(s fmt.State, verb rune) {
	_, _ = fmt.Fprint(s, o.template(fmt.FormatString(s, verb), verb))
}

// template returns the operand as a part of a template.
func (o operand) template(directive string, verb rune) string {
	switch v := o.value.(type) {
	case *Error:
		return v.text(Templatef("%s", v.Words()), Templatef("%s", v.hint()))
	case words:
		return string(v)
	case interface{ Template() string }:
		return v.Template()
	case known, bool, Code, CallStatus, Status:
		return fmt.Sprintf(directive, v)
	case time.Time, time.Duration:
		return asNumber(fmt.Sprintf(directive, v))
	}
	text := fmt.Sprintf(directive, o.value)
	switch kind := reflect.ValueOf(o.value).Kind(); {
	case kind >= reflect.Int && kind <= reflect.Float64:
		return asNumber(text)
	case verb == 'q' && len(text) > 1:
		return text[:1] + asValue(text[1:len(text)-1]) + text[len(text)-1:]
	}
	return asValue(text)
}

func asValue(text string) string {
	return string(valueBegins) + marks.Replace(text) + string(valueEnds)
}

// shortNumber is the length of numbers that are words: they identify nobody.
const shortNumber = 3

func asNumber(text string) string {
	if len(text) <= shortNumber {
		return text
	}
	return string(numberBegins) + marks.Replace(text) + string(valueEnds)
}
