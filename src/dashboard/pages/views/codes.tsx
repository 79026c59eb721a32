// What a code of doctor means and what to do, with what was found of it now; without a code, all of them.

import { Link, useParams } from 'wouter';
import type { CodeDoc } from '../../wire/views.ts';
import { useCodeDocs } from '../data/codes.ts';
import { useRows } from '../data/hooks.ts';
import { capital } from '../parts/format.ts';
import { SeverityBadge } from '../parts/health.tsx';
import { Problems } from '../parts/problems.tsx';

export function CodesView() {
  const { code } = useParams();
  const [docs, why] = useCodeDocs();
  if (docs === undefined) return <h1>{why === '' ? 'Codes' : `The codes cannot be read: ${why}`}</h1>;
  if (code === undefined) return <AllCodes docs={docs} />;
  const doc = docs.find((one) => one.code === code);
  if (doc === undefined)
    return (
      <>
        <h1>There is no code {code}</h1>
        <p>
          <Link href="/codes">All codes</Link>
        </p>
      </>
    );
  return <OneCode doc={doc} />;
}

function AllCodes({ docs }: { readonly docs: readonly CodeDoc[] }) {
  return (
    <>
      <h1>Codes</h1>
      <ul className="code-list">
        {docs.map(({ code, title, severity }) => (
          <li key={code}>
            <Link href={`/codes/${code}`}>
              <code>{code}</code>
            </Link>{' '}
            {capital(title)} <span className="small">{severity}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

function OneCode({ doc: { code, title, severity, means, fix } }: { readonly doc: CodeDoc }) {
  const found = useRows('problems').filter((one) => one.code === code);
  return (
    <>
      <p className="crumbs">
        <Link href="/codes">Codes</Link>
      </p>
      <h1>
        {code}: {title} <SeverityBadge severity={severity} />
      </h1>
      <section className="card" aria-label="Meaning">
        <h2>What it means</h2>
        <p>{means}</p>
        <h2>What to do</h2>
        <p>{fix}</p>
        <p className="small">
          On the command line: <code>portolan doctor</code>
        </p>
      </section>
      <h2 className="section">Found now</h2>
      {found.length === 0 ? (
        <p className="nothing">Nothing of this kind is found now, where the dashboard can look.</p>
      ) : (
        <Problems problems={found} />
      )}
    </>
  );
}
