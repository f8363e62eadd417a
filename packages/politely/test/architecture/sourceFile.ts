import ts from "typescript";

/** One import of a module, as written. */
export interface Import {
  readonly specifier: string;
  /** It names types only, so the layers it joins are not joined when the program runs. */
  readonly isTypeOnly: boolean;
  /** It is still there in the compiled file: `import { type A }` leaves an empty import behind, `import type` leaves nothing. */
  readonly isEmitted: boolean;
}

/** One function, method or accessor with a body. */
export interface FunctionSpan {
  readonly name: string;
  readonly line: number;
  readonly lineCount: number;
}

/** What the rules need to know about one source file. */
export interface SourceFile {
  /** From `src/` on, with forward slashes: `core/gap.ts`. */
  readonly path: string;
  readonly lineCount: number;
  readonly imports: readonly Import[];
  readonly functions: readonly FunctionSpan[];
  /** Names used in code, with `Math.random` as one; comments and strings are not code. */
  readonly names: ReadonlySet<string>;
  readonly hasDefaultExport: boolean;
  readonly hasReExport: boolean;
}

/** Parses `text`, without looking at any other file. */
export function parseSource(path: string, text: string): SourceFile {
  const tree = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const imports: Import[] = [];
  const functions: FunctionSpan[] = [];
  const names = new Set<string>();

  const visit = (node: ts.Node): void => {
    const found = importOf(node);
    if (found !== undefined) {
      imports.push(found);
    }
    if (ts.isFunctionLike(node) && "body" in node && node.body !== undefined) {
      functions.push(spanOf(node, tree));
    }
    if (ts.isIdentifier(node)) {
      names.add(node.text);
    }
    if (ts.isPropertyAccessExpression(node) && ts.isIdentifier(node.expression)) {
      names.add(`${node.expression.text}.${node.name.text}`);
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);

  return {
    path,
    lineCount: text.replace(/\n$/, "").split("\n").length,
    imports,
    functions,
    names,
    hasDefaultExport: tree.statements.some(isDefaultExport),
    hasReExport: tree.statements.some((node) => ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined),
  };
}

function importOf(node: ts.Node): Import | undefined {
  if (ts.isImportDeclaration(node) && ts.isStringLiteral(node.moduleSpecifier)) {
    const clause = node.importClause;
    const isWholly = clause?.phaseModifier === ts.SyntaxKind.TypeKeyword;
    return {
      specifier: node.moduleSpecifier.text,
      isTypeOnly:
        isWholly || (clause !== undefined && clause.name === undefined && namesTypesOnly(clause.namedBindings)),
      isEmitted: !isWholly,
    };
  }
  if (ts.isExportDeclaration(node) && node.moduleSpecifier !== undefined && ts.isStringLiteral(node.moduleSpecifier)) {
    return {
      specifier: node.moduleSpecifier.text,
      isTypeOnly: node.isTypeOnly || namesTypesOnly(node.exportClause),
      isEmitted: !node.isTypeOnly,
    };
  }
  if (ts.isCallExpression(node) && isModuleCall(node.expression)) {
    const [argument] = node.arguments;
    // A computed name cannot be judged, so it is reported under a name that no rule allows.
    const specifier = argument !== undefined && ts.isStringLiteral(argument) ? argument.text : "(computed)";
    return { specifier, isTypeOnly: false, isEmitted: true };
  }
  return undefined;
}

function namesTypesOnly(bindings: ts.NamedImportBindings | ts.NamedExportBindings | undefined): boolean {
  return (
    bindings !== undefined &&
    (ts.isNamedImports(bindings) || ts.isNamedExports(bindings)) &&
    bindings.elements.length > 0 &&
    bindings.elements.every((element) => element.isTypeOnly)
  );
}

function isModuleCall(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === "require");
}

function spanOf(node: ts.SignatureDeclaration, tree: ts.SourceFile): FunctionSpan {
  const first = tree.getLineAndCharacterOfPosition(node.getStart(tree)).line;
  const last = tree.getLineAndCharacterOfPosition(node.getEnd()).line;
  return { name: nameOf(node), line: first + 1, lineCount: last - first + 1 };
}

function nameOf(node: ts.SignatureDeclaration): string {
  if (node.name !== undefined) {
    return node.name.getText();
  }
  if (ts.isConstructorDeclaration(node)) {
    return "constructor";
  }
  return ts.isVariableDeclaration(node.parent) ? node.parent.name.getText() : "(anonymous)";
}

function isDefaultExport(node: ts.Statement): boolean {
  if (ts.isExportAssignment(node)) {
    return true;
  }
  if (ts.isExportDeclaration(node) && node.exportClause !== undefined && ts.isNamedExports(node.exportClause)) {
    return node.exportClause.elements.some((element) => element.name.text === "default");
  }
  return (
    ts.canHaveModifiers(node) &&
    (ts.getModifiers(node) ?? []).some((modifier) => modifier.kind === ts.SyntaxKind.DefaultKeyword)
  );
}
